import COpenSSL
import Cryptography
import Testing

struct OpenSSLErrorTests {
    @Test func `an error takes the whole queue, oldest entry first, and leaves it empty`() {
        ERR_clear_error()
        #expect(EVP_MD_fetch(nil, "NO-SUCH-DIGEST", nil) == nil)
        #expect(EVP_CIPHER_fetch(nil, "NO-SUCH-CIPHER", nil) == nil)
        let error = OpenSSLError(draining: "fetch")

        #expect(error.stack.count == 2)
        #expect(error.stack.first?.description.contains("NO-SUCH-DIGEST") == true)
        #expect(error.stack.last?.description.contains("NO-SUCH-CIPHER") == true)
        #expect(error.stack.allSatisfy { $0.library == ERR_LIB_EVP && $0.code != 0 })
        #expect(error.description.hasPrefix("fetch: error:"))
        #expect(ERR_peek_error() == 0)
    }

    @Test func `without a reason the error says what was being done`() {
        ERR_clear_error()
        let error = OpenSSLError(draining: "do it")
        #expect(error.stack.isEmpty)
        #expect(error.description == "do it: OpenSSL gave no reason")
    }

    @Test func `clearing the queue empties it`() {
        #expect(EVP_MD_fetch(nil, "NO-SUCH-DIGEST", nil) == nil)
        OpenSSLError.clearQueue()
        #expect(ERR_peek_error() == 0)
    }

    @Test func `a failed authentication leaves the queue empty`() {
        #expect(throws: AESGCM.Failure.authenticationFailed) {
            try AESGCM.open([UInt8](repeating: 0, count: 28), using: SecureRandom.secureBytes(32))
        }
        #expect(ERR_peek_error() == 0)
    }
}
