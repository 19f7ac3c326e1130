/* The HTTP server of `prof view`. Anybody on this machine may connect, and so may a web page in the
   browser. A request without the token gets nothing. A Host header of another name is refused: it
   comes from DNS rebinding. Nothing is written to disk. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"

enum { CLIENTS_MAX = 16, HEAD_BYTES_MAX = 8192, PIPE_BYTES = 1 << 20, STALL_SECONDS = 60 };

/* Browsers open connections that they do not use at once. Requests are read side by side. */
typedef struct view_client {
  int fd;
  size_t used;
  char head[HEAD_BYTES_MAX + 1];
} view_client;

typedef struct view_state {
  const view_site *site;
  view_client clients[CLIENTS_MAX];
  size_t count;
  uint64_t sent_bytes;
  int status; /* -1: no download has ended; else an exit status */
} view_state;

int view_listen(uint16_t *port_out) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof address;
  if (bind(fd, (const struct sockaddr *)&address, bytes) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  *port_out = ntohs(address.sin_port);
  return fd;
}

/* ---- sending ---- */

/* False: the other side has gone, or took nothing for STALL_SECONDS. */
static bool send_all(int fd, const void *data, size_t bytes) {
  for (const char *at = data; bytes > 0;) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= (size_t)sent;
  }
  return true;
}

/* Waits until the other side has taken all and closes, so that no reset takes bytes away. */
static void finish_sending(int fd) {
  char rest[4096];
  struct pollfd waiting = {.fd = fd, .events = POLLIN};
  shutdown(fd, SHUT_WR);
  while (poll(&waiting, 1, 5000) > 0 && read(fd, rest, sizeof rest) > 0) {
  }
}

/* The page's address is a secret: no cache keeps it, and no other page gets it. */
static bool send_head(int fd, const view_site *site, const char *status, const char *more) {
  char head[1024];
  const int bytes = snprintf(
      head, sizeof head,
      "HTTP/1.1 %s\r\n"
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
      "%s\r\n",
      status, site->nonce, site->nonce, more);
  return bytes > 0 && (size_t)bytes < sizeof head && send_all(fd, head, (size_t)bytes);
}

static void send_text(int fd, const view_site *site, const char *status, const char *type,
                      const char *text, size_t bytes) {
  char more[128];
  snprintf(more, sizeof more, "Content-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n", type,
           bytes);
  if (send_head(fd, site, status, more)) send_all(fd, text, bytes);
  finish_sending(fd);
}

static void refuse(int fd, const view_site *site, const char *status) {
  send_text(fd, site, status, "text/plain", status, strlen(status));
}

/* ---- the trace ---- */

/* The process that writes the trace into the pipe. *from_out: the pipe's end to read. */
static pid_t start_writer(const view_site *site, int *from_out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    signal(SIGPIPE, SIG_DFL); /* it ends without a message if nobody reads */
    _exit(site->write_trace(site->context, ends[1]));
  }
  close(ends[1]);
  *from_out = ends[0];
  if (pid < 0) close(ends[0]);
  return pid;
}

/* One chunk of HTTP's "chunked" coding: the size is not known before all is written. */
static bool send_chunk(int fd, const char *data, size_t bytes) {
  char size[32];
  const int digits = snprintf(size, sizeof size, "%zx\r\n", bytes);
  return send_all(fd, size, (size_t)digits) && send_all(fd, data, bytes) && send_all(fd, "\r\n", 2);
}

/* Returns how much was sent. *is_gone: the other side has gone. */
static uint64_t send_chunks(int fd, int from, bool *is_gone) {
  static char data[PIPE_BYTES / 4];
  uint64_t sent = 0;
  for (;;) {
    const ssize_t got = read(from, data, sizeof data);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return sent;
    *is_gone = !send_chunk(fd, data, (size_t)got);
    if (*is_gone) return sent;
    sent += (uint64_t)got;
  }
}

/* A download that the other side broke off does not count. One that could not be written does: it
   ends without the last chunk, so the page sees that it is cut. */
static void send_trace(int fd, view_state *state) {
  int from = -1, code = 0;
  bool is_gone = !send_head(fd, state->site, "200 OK",
                            "Content-Type: application/octet-stream\r\n"
                            "Transfer-Encoding: chunked\r\n");
  const pid_t writer = is_gone ? -1 : start_writer(state->site, &from);
  if (is_gone) return;
  if (writer < 0) {
    say("prof view: cannot start a process that writes the trace: %s", strerror(errno));
    state->status = EXIT_FAILED;
    return;
  }
  const uint64_t sent = send_chunks(fd, from, &is_gone);
  close(from);
  while (waitpid(writer, &code, 0) < 0 && errno == EINTR) {
  }
  if (!is_gone && (!WIFEXITED(code) || WEXITSTATUS(code) != EXIT_OK)) {
    state->status = EXIT_FAILED;
    return;
  }
  if (is_gone || !send_all(fd, "0\r\n\r\n", 5)) {
    say("prof view: the browser broke the download off after %llu bytes; reload its page",
        (unsigned long long)sent);
    return;
  }
  finish_sending(fd);
  state->sent_bytes = sent;
  state->status = EXIT_OK;
}

/* ---- requests ---- */

/* The value of the only header of that name, cut at the line's end by NUL; or NULL. */
static char *take_header(char *head, const char *name) {
  char *value = NULL;
  const size_t name_bytes = strlen(name);
  for (char *line = strstr(head, "\r\n"); line && strncmp(line, "\r\n\r\n", 4) != 0;
       line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, name, name_bytes) != 0 || line[2 + name_bytes] != ':') continue;
    if (value) return NULL;
    value = line + 2 + name_bytes + 1;
  }
  if (!value) return NULL;
  value += strspn(value, " \t");
  value[strcspn(value, " \t\r")] = '\0';
  return value;
}

/* With any port: a tunnel may have another one on the browser's machine. */
static bool is_own_host(const char *host) {
  static const char *const names[] = {"127.0.0.1", "localhost"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const size_t bytes = strlen(names[i]);
    if (strncasecmp(host, names[i], bytes) != 0) continue;
    const char *const port = host + bytes;
    if (*port == '\0') return true;
    if (*port == ':' && strspn(port + 1, "0123456789") == strlen(port + 1)) return true;
  }
  return false;
}

/* Behind "/TOKEN/" of the path, or NULL. The time taken does not depend on how much is right. */
static const char *path_behind_token(const char *path, const view_site *site) {
  const size_t bytes = strlen(site->token);
  if (strlen(path) < bytes + 2 || path[0] != '/' || path[bytes + 1] != '/') return NULL;
  unsigned char different = 0;
  for (size_t i = 0; i < bytes; i++) different |= (unsigned char)(path[i + 1] ^ site->token[i]);
  return different ? NULL : path + bytes + 2;
}

static void answer(view_client *client, view_state *state) {
  const view_site *const site = state->site;
  char *const host = take_header(client->head, "Host");
  char *const path = client->head + strcspn(client->head, " \r\n");
  if (*path != ' ' || !host) {
    refuse(client->fd, site, "400 Bad Request");
    return;
  }
  *path = '\0';
  path[1 + strcspn(path + 1, " \r\n")] = '\0';
  const char *const place = path_behind_token(path + 1, site);
  if (!is_own_host(host))
    refuse(client->fd, site, "403 Forbidden");
  else if (strcmp(client->head, "GET") != 0)
    refuse(client->fd, site, "405 Method Not Allowed");
  else if (place && *place == '\0')
    send_text(client->fd, site, "200 OK", "text/html", site->page, site->page_bytes);
  else if (place && strcmp(place, "trace") == 0)
    send_trace(client->fd, state);
  else
    refuse(client->fd, site, "404 Not Found");
}

static void remove_client(view_state *state, size_t index) {
  close(state->clients[index].fd);
  memmove(&state->clients[index], &state->clients[index + 1],
          (--state->count - index) * sizeof *state->clients);
}

static void add_client(view_state *state, int listener) {
  struct sockaddr_in from;
  socklen_t from_bytes = sizeof from;
  const int fd = accept4(listener, (struct sockaddr *)&from, &from_bytes, SOCK_CLOEXEC);
  if (fd < 0) return;
  const struct timeval stall = {.tv_sec = STALL_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall);
  if (state->count == CLIENTS_MAX) remove_client(state, 0);
  state->clients[state->count].fd = fd;
  state->clients[state->count++].used = 0;
}

/* Reads what has come. True: the client is done, with an answer or without. */
static bool read_client(view_client *client, view_state *state) {
  const ssize_t got =
      recv(client->fd, client->head + client->used, HEAD_BYTES_MAX - client->used, MSG_DONTWAIT);
  if (got < 0) return errno != EINTR && errno != EAGAIN;
  if (got == 0) return true;
  client->used += (size_t)got;
  client->head[client->used] = '\0';
  const bool is_broken = memchr(client->head, '\0', client->used) != NULL;
  if (!is_broken && strstr(client->head, "\r\n\r\n"))
    answer(client, state);
  else if (is_broken || client->used == HEAD_BYTES_MAX)
    refuse(client->fd, state->site, "400 Bad Request");
  else
    return false;
  return true;
}

int view_serve(int listener, const view_site *site, uint64_t *bytes_out) {
  view_state *const state = calloc(1, sizeof *state);
  if (!state) {
    say("prof view: no memory for %zu bytes of connections", sizeof *state);
    return EXIT_FAILED;
  }
  state->site = site;
  state->status = -1;
  while (state->status < 0) {
    struct pollfd waiting[CLIENTS_MAX + 1] = {{.fd = listener, .events = POLLIN}};
    for (size_t i = 0; i < state->count; i++)
      waiting[i + 1] = (struct pollfd){.fd = state->clients[i].fd, .events = POLLIN};
    if (poll(waiting, state->count + 1, -1) < 0) {
      if (errno == EINTR) continue;
      say("prof view: cannot wait for the browser: %s", strerror(errno));
      break;
    }
    for (size_t i = state->count; i-- > 0 && state->status < 0;)
      if (waiting[i + 1].revents && read_client(&state->clients[i], state)) remove_client(state, i);
    if (waiting[0].revents && state->status < 0) add_client(state, listener);
  }
  while (state->count > 0) remove_client(state, state->count - 1);
  *bytes_out = state->sent_bytes;
  const int status = state->status < 0 ? EXIT_FAILED : state->status;
  free(state);
  return status;
}
