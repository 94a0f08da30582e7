#include <libpq-fe.h>

// libpq 17 can queue a sync without a send(). Older versions write each sync at once.
static inline int saltern_queue_pipeline_sync(PGconn *connection) {
#ifdef LIBPQ_HAS_SEND_PIPELINE_SYNC
    return PQsendPipelineSync(connection);
#else
    return PQpipelineSync(connection);
#endif
}

// A declaration from <openssl/ssl.h>, which libpq itself links.
struct ssl_st;
int SSL_pending(const struct ssl_st *ssl);

// OpenSSL may hold decrypted bytes that did not fit in libpq's buffer. The socket does not become readable for them.
static inline int saltern_has_pending_tls_input(PGconn *connection) {
    const struct ssl_st *ssl = (const struct ssl_st *)PQsslStruct(connection, "OpenSSL");
    return ssl != 0 && SSL_pending(ssl) > 0;
}
