#include <libpq-fe.h>

// libpq 17 can queue a sync without a send() of its own; with an older one each sync is written at once.
static inline int saltern_queue_pipeline_sync(PGconn *connection) {
#ifdef LIBPQ_HAS_SEND_PIPELINE_SYNC
    return PQsendPipelineSync(connection);
#else
    return PQpipelineSync(connection);
#endif
}

// Declared as in <openssl/ssl.h>, which libpq itself links.
struct ssl_st;
int SSL_pending(const struct ssl_st *ssl);

// OpenSSL may hold decrypted bytes that libpq had no room for; the socket does not become readable for them.
static inline int saltern_has_pending_tls_input(PGconn *connection) {
    const struct ssl_st *ssl = (const struct ssl_st *)PQsslStruct(connection, "OpenSSL");
    return ssl != 0 && SSL_pending(ssl) > 0;
}
