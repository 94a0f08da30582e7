import Cryptography
import Foundation
import Testing

@testable import Samples

/// The client in Examples/WithoutKit, with the test vector of docs/protocol.md.
struct SampleTests {
    @Test func `a password becomes the keys of the test vector`() throws {
        let stretched = try StretchedPassword(
            password: "S3kr3t!", salt: "com.example.MyGreatSite:robnapier@gmail.com", iterations: 600_000)
        #expect(
            Hex.encode([UInt8](stretched.passwordKey))
                == "de9e20b2f0243e88b94ba524b68c65b284fd1820259867ffe62d7c2429a17853")
        #expect(throws: ClientError.weakParameters) {
            try StretchedPassword(password: "S3kr3t!", salt: "salt", iterations: 599_999)
        }
        let id = UUID()
        let sealed = try Sealed.seal(Data("Buy salt.".utf8), id: id, key: stretched.unlockKey)
        #expect(try Sealed.open(sealed, id: id, key: stretched.unlockKey) == Data("Buy salt.".utf8))
        #expect(throws: (any Error).self) { try Sealed.open(sealed, id: UUID(), key: stretched.unlockKey) }
    }
}
