/* A library with nothing in it: what dlopen() itself costs (bench/start.c). */
int bench_empty(void);
int bench_empty(void) { return 0; }
