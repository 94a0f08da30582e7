#ifndef COMMONCRYPTO_H
#define COMMONCRYPTO_H

#include <stddef.h>
#include <stdint.h>

// <CommonCrypto/CommonCryptor.h>, <CommonCrypto/CommonCryptoError.h>:
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/CCCrypt.3cc.html
enum { kCCSuccess = 0, kCCParamError = -4300, kCCBufferTooSmall = -4301, kCCAlignmentError = -4303 };
typedef int32_t CCCryptorStatus;

enum { kCCEncrypt = 0, kCCDecrypt };
typedef uint32_t CCOperation;

enum { kCCAlgorithmAES128 = 0, kCCAlgorithmAES = 0 };
typedef uint32_t CCAlgorithm;

enum { kCCOptionPKCS7Padding = 0x0001, kCCOptionECBMode = 0x0002 };
typedef uint32_t CCOptions;

CCCryptorStatus CCCrypt(CCOperation op, CCAlgorithm alg, CCOptions options, const void *key, size_t keyLength,
                        const void *iv, const void *dataIn, size_t dataInLength, void *dataOut,
                        size_t dataOutAvailable, size_t *dataOutMoved);

// <CommonCrypto/CommonKeyDerivation.h>:
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/CCKeyDerivationPBKDF.3cc.html
enum { kCCPBKDF2 = 2 };
typedef uint32_t CCPBKDFAlgorithm;

enum { kCCPRFHmacAlgSHA1 = 1, kCCPRFHmacAlgSHA224 = 2, kCCPRFHmacAlgSHA256 = 3 };
typedef uint32_t CCPseudoRandomAlgorithm;

int CCKeyDerivationPBKDF(CCPBKDFAlgorithm algorithm, const char *password, size_t passwordLen, const uint8_t *salt,
                         size_t saltLen, CCPseudoRandomAlgorithm prf, unsigned rounds, uint8_t *derivedKey,
                         size_t derivedKeyLen);

#endif
