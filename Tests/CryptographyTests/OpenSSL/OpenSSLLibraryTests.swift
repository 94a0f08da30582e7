import Foundation
import Testing

@testable import Cryptography

@Suite struct OpenSSLLibraryTests {
    @Test func `algorithms work while the process exits`() async {
        await #expect(processExitsWith: .success) {
            // Exit handlers run in reverse order: this one after those of OpenSSL.
            atexit {
                _ = SecureRandom.bytes(16)
                _ = SHA256.hash([1])
                _ = FetchedAlgorithm.Digest("SHA512")
            }
            _ = SecureRandom.bytes(16)
            _ = SHA256.hash([1])
            exit(EXIT_SUCCESS)
        }
    }
}
