#include "CommonCrypto.h"

#include <openssl/evp.h>

CCCryptorStatus CCCrypt(CCOperation op, CCAlgorithm alg, CCOptions options, const void *key, size_t keyLength,
                        const void *iv, const void *dataIn, size_t dataInLength, void *dataOut,
                        size_t dataOutAvailable, size_t *dataOutMoved) {
    size_t padded = options & kCCOptionPKCS7Padding ? (dataInLength / 16 + 1) * 16 : dataInLength;
    if (alg != kCCAlgorithmAES || keyLength != 32 || iv == NULL) return kCCParamError;
    if (op == kCCEncrypt && dataOutAvailable < padded) return kCCBufferTooSmall;
    if (padded % 16 != 0) return kCCAlignmentError;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int updated = 0, finished = 0;
    int done = EVP_CipherInit_ex(context, EVP_aes_256_cbc(), NULL, key, iv, op == kCCEncrypt) &&
               EVP_CIPHER_CTX_set_padding(context, (options & kCCOptionPKCS7Padding) != 0) &&
               EVP_CipherUpdate(context, dataOut, &updated, dataIn, (int)dataInLength) &&
               EVP_CipherFinal_ex(context, (uint8_t *)dataOut + updated, &finished);
    EVP_CIPHER_CTX_free(context);
    *dataOutMoved = (size_t)(updated + finished);
    return done ? kCCSuccess : kCCParamError;
}

int CCKeyDerivationPBKDF(CCPBKDFAlgorithm algorithm, const char *password, size_t passwordLen, const uint8_t *salt,
                         size_t saltLen, CCPseudoRandomAlgorithm prf, unsigned rounds, uint8_t *derivedKey,
                         size_t derivedKeyLen) {
    const EVP_MD *digest = prf == kCCPRFHmacAlgSHA1     ? EVP_sha1()
                           : prf == kCCPRFHmacAlgSHA256 ? EVP_sha256()
                                                        : NULL;
    // As Apple's: https://github.com/dotnet/runtime/blob/main/src/native/libs/System.Security.Cryptography.Native.Apple/pal_keyderivation.c
    if (algorithm != kCCPBKDF2 || digest == NULL || password == NULL || rounds == 0 || derivedKeyLen == 0)
        return kCCParamError;
    return PKCS5_PBKDF2_HMAC(password, (int)passwordLen, salt, (int)saltLen, (int)rounds, digest, (int)derivedKeyLen,
                             derivedKey)
               ? kCCSuccess
               : kCCParamError;
}
