#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Swift cannot call function-like macros, and cannot import names that OpenSSL 3 defines as aliases. Each function
// below is one of these, under its own name with the prefix `saltern_`.

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
    // OpenSSL only reads the tag. The parameter of the control function has no const.
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, length, (void *)tag);
}

// Parameters keep the address of their names. A string from Swift has that address only during the call.
static inline int saltern_EVP_MAC_init(
    EVP_MAC_CTX *context, const unsigned char *key, size_t key_length, const char *digest) {
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_init(context, key, key_length, parameters);
}

static inline int saltern_EVP_KDF_derive_HKDF(
    EVP_KDF_CTX *context, const void *key, size_t key_length, const void *salt, size_t salt_length, const void *info,
    size_t info_length, unsigned char *output, size_t output_length) {
    // OpenSSL only reads the memory of the parameters. Their constructors have no const.
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_length),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_length),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_length),
        OSSL_PARAM_construct_end(),
    };
    return EVP_KDF_derive(context, output, output_length, parameters);
}

// Creates a P-256 key of an uncompressed point (65 bytes) and, unless it is NULL, a private number (32 bytes,
// big-endian). Returns NULL when OpenSSL rejects them. The caller owns the result.
static inline EVP_PKEY *saltern_EVP_PKEY_new_P256(const unsigned char *point, const unsigned char *number) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    BIGNUM *secret = number == NULL ? NULL : BN_secure_new();
    if (secret != NULL) BN_bin2bn(number, 32, secret);
    if (builder != NULL && context != NULL && (number == NULL || secret != NULL) &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 65) == 1 &&
        (secret == NULL || OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, secret) == 1) &&
        (parameters = OSSL_PARAM_BLD_to_param(builder)) != NULL && EVP_PKEY_fromdata_init(context) == 1)
        EVP_PKEY_fromdata(context, &key, secret == NULL ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR, parameters);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    BN_clear_free(secret);
    return key;
}
// Writes the uncompressed point (65 bytes). Returns 1 on success.
static inline int saltern_EVP_PKEY_get_P256_point(const EVP_PKEY *key, unsigned char *point) {
    size_t length = 0;
    return EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, 65, &length) == 1 && length == 65;
}
// Creates a key without a point, which has the parameters of P-256. Returns NULL on failure. The caller owns the
// result.
static inline EVP_PKEY *saltern_EVP_PKEY_new_P256_parameters(void) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (context != NULL && EVP_PKEY_paramgen_init(context) == 1 && EVP_PKEY_CTX_set_group_name(context, "P-256") == 1)
        EVP_PKEY_paramgen(context, &key);
    EVP_PKEY_CTX_free(context);
    return key;
}
// Creates a public key of an uncompressed point (65 bytes) from the parameters of P-256. Returns NULL unless the point
// is on the curve. The caller owns the result.
static inline EVP_PKEY *saltern_EVP_PKEY_new_P256_point(EVP_PKEY *parameters, const unsigned char *point) {
    EVP_PKEY *key = EVP_PKEY_dup(parameters);
    if (key == NULL || EVP_PKEY_set1_encoded_public_key(key, point, 65) == 1) return key;
    EVP_PKEY_free(key);
    return NULL;
}
static inline EC_GROUP *saltern_EC_GROUP_new_P256(void) { return EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1); }
// Writes the uncompressed point (65 bytes) of a private number (32 bytes, big-endian). Returns 1 on success, and
// another value for zero and for numbers from the order of the curve.
static inline int saltern_P256_point_of_number(
    const EC_GROUP *group, const unsigned char *number, unsigned char *point) {
    int success = 0;
    EC_POINT *product = EC_POINT_new(group);
    BIGNUM *secret = BN_secure_new();
    if (product != NULL && secret != NULL && BN_bin2bn(number, 32, secret) != NULL) {
        BN_set_flags(secret, BN_FLG_CONSTTIME);
        success = !BN_is_zero(secret) && BN_cmp(secret, EC_GROUP_get0_order(group)) < 0 &&
                  EC_POINT_mul(group, product, secret, NULL, NULL, NULL) == 1 &&
                  EC_POINT_point2oct(group, product, POINT_CONVERSION_UNCOMPRESSED, point, 65, NULL) == 65;
    }
    BN_clear_free(secret);
    EC_POINT_free(product);
    return success;
}
// Writes the private number (32 bytes, big-endian). Returns 1 on success.
static inline int saltern_EVP_PKEY_get_P256_number(const EVP_PKEY *key, unsigned char *number) {
    BIGNUM *secret = NULL;
    int written = -1;
    if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &secret) == 1)
        written = BN_bn2binpad(secret, number, 32);
    BN_clear_free(secret);
    return written == 32;
}

// Signs a SHA-256 digest on P-256 and writes r and s (64 bytes, big-endian); 1 on success.
static inline int saltern_ECDSA_P256_sign(EVP_PKEY *key, const unsigned char *digest, unsigned char *signature) {
    unsigned char encoded[80];
    const unsigned char *cursor = encoded;
    size_t length = sizeof encoded;
    ECDSA_SIG *pair = NULL;
    int success = 0;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    if (context != NULL && EVP_PKEY_sign_init(context) == 1 &&
        EVP_PKEY_sign(context, encoded, &length, digest, 32) == 1 &&
        (pair = d2i_ECDSA_SIG(NULL, &cursor, (long)length)) != NULL)
        success = BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, 32) == 32 &&
                  BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + 32, 32) == 32;
    ECDSA_SIG_free(pair);
    EVP_PKEY_CTX_free(context);
    return success;
}
// Returns 1 when r and s (64 bytes) are a signature of the digest.
static inline int saltern_ECDSA_P256_verify(EVP_PKEY *key, const unsigned char *digest, const unsigned char *signature) {
    unsigned char *encoded = NULL;
    int length = 0, success = 0;
    BIGNUM *r = BN_bin2bn(signature, 32, NULL), *s = BN_bin2bn(signature + 32, 32, NULL);
    ECDSA_SIG *pair = ECDSA_SIG_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = NULL;
        s = NULL;
        length = i2d_ECDSA_SIG(pair, &encoded);
    }
    if (length > 0 && context != NULL && EVP_PKEY_verify_init(context) == 1)
        success = EVP_PKEY_verify(context, encoded, (size_t)length, digest, 32) == 1;
    OPENSSL_free(encoded);
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    EVP_PKEY_CTX_free(context);
    return success;
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
static inline void saltern_SSL_CTX_cleanse_plaintext(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CLEANSE_PLAINTEXT);
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
