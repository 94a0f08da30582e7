// Opens TLS connections by the thousand, which wrk cannot do honestly: it may resume sessions, and it does not count the
// handshake as part of a request.
//
//   connections handshakes PORT SECONDS THREADS PATH full|resumed
//       each thread connects to 127.0.0.1, asks for PATH, reads the reply to its end and closes, again and again; prints
//       one JSON object
//   connections idle PORT COUNT PATH
//       opens COUNT connections, makes one request on each, prints "open", and keeps them until its input ends

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { latencies_per_thread = 200000 };

static SSL_CTX *context;
static int port;
static const char *path;
static int resuming;
static double deadline;

struct worker {
    pthread_t thread;
    long done, resumed, failed;
    float *latencies;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int connect_socket(void) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int on = 1;
    struct timeval patience = {.tv_sec = 10};
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    close(descriptor);
    return -1;
}

// A connected session, or NULL; `previous` may be NULL.
static SSL *connect_tls(SSL_SESSION *previous) {
    int descriptor = connect_socket();
    if (descriptor < 0) return NULL;
    SSL *tls = SSL_new(context);
    SSL_set_fd(tls, descriptor);
    SSL_set_tlsext_host_name(tls, "localhost");
    if (previous) SSL_set_session(tls, previous);
    if (SSL_connect(tls) == 1) return tls;
    SSL_free(tls);
    close(descriptor);
    return NULL;
}

static void disconnect(SSL *tls) {
    int descriptor = SSL_get_fd(tls);
    SSL_free(tls);
    close(descriptor);
}

// Sends one request, reads at least the head of the reply, and to the end when `closing`. Whether it was a 200.
static int request(SSL *tls, int closing) {
    char buffer[16384];
    int length = snprintf(buffer, sizeof buffer, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n", path,
                          closing ? "close" : "keep-alive");
    if (SSL_write(tls, buffer, length) != length) return 0;
    int count = SSL_read(tls, buffer, sizeof buffer);
    int good = count > 12 && memcmp(buffer, "HTTP/1.1 200", 12) == 0;
    while (closing && count > 0) count = SSL_read(tls, buffer, sizeof buffer);
    return good;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    SSL_SESSION *session = NULL;
    while (now() < deadline) {
        double started = now();
        SSL *tls = connect_tls(session);
        ERR_clear_error();
        if (!tls || !request(tls, 1)) {
            worker->failed++;
            if (tls) disconnect(tls);
            continue;
        }
        if (SSL_session_reused(tls)) worker->resumed++;
        // TLS 1.3 sends its ticket after the handshake, so the session is complete only now.
        if (resuming) {
            SSL_SESSION_free(session);
            session = SSL_get1_session(tls);
        }
        // Without this OpenSSL takes the session for broken and never resumes it.
        SSL_set_shutdown(tls, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        disconnect(tls);
        if (worker->done < latencies_per_thread) worker->latencies[worker->done] = (now() - started) * 1000;
        worker->done++;
    }
    SSL_SESSION_free(session);
    return NULL;
}

static int compare(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static int measure_handshakes(double seconds, int threads) {
    struct worker *workers = calloc(threads, sizeof *workers);
    double started = now();
    deadline = started + seconds;
    for (int i = 0; i < threads; i++) {
        workers[i].latencies = malloc(latencies_per_thread * sizeof(float));
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    long done = 0, resumed = 0, failed = 0, kept = 0;
    float *all = malloc((size_t)threads * latencies_per_thread * sizeof(float));
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        done += workers[i].done, resumed += workers[i].resumed, failed += workers[i].failed;
        long count = workers[i].done < latencies_per_thread ? workers[i].done : latencies_per_thread;
        memcpy(all + kept, workers[i].latencies, count * sizeof(float));
        kept += count;
    }
    qsort(all, kept, sizeof(float), compare);
    printf("{\"done\":%ld,\"resumed\":%ld,\"failed\":%ld,\"seconds\":%.6f,\"p50\":%.4f,\"p99\":%.4f}\n", done, resumed,
           failed, now() - started, kept ? all[kept / 2] : 0, kept ? all[kept * 99 / 100] : 0);
    return 0;
}

static int hold_idle(int count) {
    SSL **held = calloc(count, sizeof *held);
    for (int i = 0; i < count; i++) {
        held[i] = connect_tls(NULL);
        if (!held[i] || !request(held[i], 0)) {
            fprintf(stderr, "connection %d of %d failed: %s\n", i + 1, count, strerror(errno));
            return 1;
        }
    }
    puts("open");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}

int main(int count, char **words) {
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (count == 7 && strcmp(words[1], "handshakes") == 0) {
        port = atoi(words[2]), path = words[5], resuming = strcmp(words[6], "resumed") == 0;
        return measure_handshakes(atof(words[3]), atoi(words[4]));
    }
    if (count == 5 && strcmp(words[1], "idle") == 0) {
        port = atoi(words[2]), path = words[4];
        return hold_idle(atoi(words[3]));
    }
    fprintf(stderr, "see the head of the source\n");
    return 64;
}
