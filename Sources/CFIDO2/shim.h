#ifndef CFIDO2_SHIM_H
#define CFIDO2_SHIM_H

#include <fido.h>
#include <fido/eddsa.h>
#include <fido/es256.h>
#include <fido/rs256.h>
// libfido2 leaves its errors in the queue of OpenSSL.
#include <openssl/err.h>

#endif
