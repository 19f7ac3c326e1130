/* The HTML, CSS and script of a report. html_page.c is made from src/report/html by
   tools/report_page.py; a test checks that it is current. */
#ifndef PROF_REPORT_HTML_PAGE_H
#define PROF_REPORT_HTML_PAGE_H

/* A piece that begins with it is a place: title, summary, encoding or data. */
enum { PROF_I_HTML_PLACE = 1 };

/* Pieces of the page, and NULL. */
extern const char *const prof_i_html_page[];

#endif
