/* A server that is no Redis: says its port, then gives each connection the same answer, whatever it is asked.
 * usage: answering garbage | list | deep | number | closed | silent | refused | long | tls |
 *   map | full */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
  const char *name, *text;
  int times; /* that the text is sent */
} answers[] = {{"garbage", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 1},
               {"list", "*1000000000\r\n", 1},
               {"deep", "*1\r\n", 1000},
               {"number", ":12345678901234567890123456789\r\n", 1},
               {"closed", "", 0},
               {"silent", "", 1},
               {"refused", "-NOPERM this user has no permissions to run the command\033[2J\r\n", 1},
               {"long", "$1000000000\r\n", 1},
               {"map", "%1\r\n+a\r\n+b\r\n", 1}, /* of RESP3, which nobody asked for */
               {"full", "-ERR max number of clients reached\r\n", 1},
               {"tls", "\x15\x03\x03", 1}}; /* the beginning of an alert, as OpenSSL's server has it */

/* A text of which there is no end. */
static void send_long(int fd) {
  static char more[1 << 16];
  memset(more, 'x', sizeof more);
  for (int i = 0; i < 1 << 14; i++)
    if (send(fd, more, sizeof more, MSG_NOSIGNAL) <= 0) return;
}

static void answer(int fd, int which) {
  char asked[4096];
  if (!answers[which].times || recv(fd, asked, sizeof asked, 0) <= 0) return;
  for (int i = 0; i < answers[which].times; i++)
    if (send(fd, answers[which].text, strlen(answers[which].text), MSG_NOSIGNAL) < 0) return;
  if (!strcmp(answers[which].name, "long")) send_long(fd);
  while (recv(fd, asked, sizeof asked, 0) > 0)
    if (!strcmp(answers[which].name, "refused"))
      send(fd, answers[which].text, strlen(answers[which].text), MSG_NOSIGNAL);
}

int main(int argc, char **argv) {
  const int count = sizeof answers / sizeof *answers;
  int which = 0;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  while (argc == 2 && which < count && strcmp(argv[1], answers[which].name) != 0) which++;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (argc != 2 || which == count || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 8) ||
      getsockname(fd, (struct sockaddr *)&at, &size))
    return 2;
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with who asked for it */
  printf("%d\n", ntohs(at.sin_port));
  if (fflush(stdout)) return 2;
  for (;;) {
    int connection = accept(fd, NULL, NULL);
    if (connection < 0) return 1;
    answer(connection, which);
    close(connection);
  }
}
