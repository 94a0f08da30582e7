#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Swift cannot call function-like macros, and cannot see names that OpenSSL 3 defines as aliases.
// Each function below is one of those, under its own name with the prefix `saltern_`.

static inline void saltern_free(void *pointer) { OPENSSL_free(pointer); }
static inline EVP_PKEY *saltern_EVP_EC_gen_P256(void) { return EVP_EC_gen("P-256"); }

static inline int saltern_ERR_get_lib(unsigned long code) { return ERR_GET_LIB(code); }
static inline int saltern_ERR_get_reason(unsigned long code) { return ERR_GET_REASON(code); }

static inline int saltern_EVP_CIPHER_CTX_set_iv_length(EVP_CIPHER_CTX *context, int length) {
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, length, NULL);
}
static inline int saltern_EVP_CIPHER_CTX_get_tag(EVP_CIPHER_CTX *context, int length, void *tag) {
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, length, tag);
}
static inline int saltern_EVP_CIPHER_CTX_set_tag(EVP_CIPHER_CTX *context, int length, const void *tag) {
    // OpenSSL only reads the tag; the parameter of the control function has no const.
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, length, (void *)tag);
}

// Parameters keep the address of their names, which a string that Swift passes does not have beyond the call.
static inline int saltern_EVP_MAC_init(
    EVP_MAC_CTX *context, const unsigned char *key, size_t key_length, const char *digest) {
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_init(context, key, key_length, parameters);
}

static inline long saltern_BIO_get_mem_data(BIO *bio, char **data) { return BIO_get_mem_data(bio, data); }

static inline long saltern_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}
static inline long saltern_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_max_proto_version(context, version);
}
// The SSL_OP_ names expand to a function-like macro.
static inline void saltern_SSL_CTX_disable_renegotiation_and_compression(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
static inline uint64_t saltern_SSL_OP_NO_RENEGOTIATION(void) { return SSL_OP_NO_RENEGOTIATION; }
static inline void saltern_SSL_CTX_prefer_server_ciphers(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}
static inline long saltern_SSL_CTX_set_mode(SSL_CTX *context, long mode) { return SSL_CTX_set_mode(context, mode); }
static inline long saltern_SSL_CTX_clear_mode(SSL_CTX *context, long mode) { return SSL_CTX_clear_mode(context, mode); }
static inline long saltern_SSL_CTX_set_groups_list(SSL_CTX *context, const char *groups) {
    return SSL_CTX_set1_groups_list(context, groups);
}
static inline long saltern_SSL_CTX_set_sigalgs_list(SSL_CTX *context, const char *algorithms) {
    return SSL_CTX_set1_sigalgs_list(context, algorithms);
}
static inline long saltern_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}
static inline long saltern_SSL_CTX_set_chain(SSL_CTX *context, STACK_OF(X509) * chain) {
    return SSL_CTX_set1_chain(context, chain);
}
static inline long saltern_SSL_CTX_sess_number(SSL_CTX *context) { return SSL_CTX_sess_number(context); }
static inline long saltern_SSL_CTX_set_read_ahead(SSL_CTX *context, int enabled) {
    return SSL_CTX_set_read_ahead(context, enabled);
}
static inline long saltern_SSL_set_host_name(SSL *ssl, const char *name) { return SSL_set_tlsext_host_name(ssl, name); }

static inline STACK_OF(X509) * saltern_X509_stack_new(void) { return sk_X509_new_null(); }
static inline int saltern_X509_stack_push(STACK_OF(X509) * stack, X509 *certificate) {
    return sk_X509_push(stack, certificate);
}
static inline int saltern_X509_stack_count(const STACK_OF(X509) * stack) { return sk_X509_num(stack); }
static inline void saltern_X509_stack_free(STACK_OF(X509) * stack) { sk_X509_free(stack); }

static inline int saltern_GENERAL_NAMES_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline const GENERAL_NAME *saltern_GENERAL_NAMES_value(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}
static inline int saltern_X509_NAME_print_RFC2253(BIO *bio, const X509_NAME *name) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
}

#endif
