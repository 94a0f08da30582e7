import Testing
import WebAuthn

struct CredentialKeyTests {
    private static func key(_ name: String) throws -> CredentialKey { try RegistrationCase(.named(name)).verify().key }

    @Test(arguments: CredentialKey.Algorithm.allCases) func `stored keys have the size of their algorithm`(
        algorithm: CredentialKey.Algorithm
    ) {
        for count in [0, 31, 33, 63, 65, 258, 260] {
            #expect(throws: WebAuthnFailure.malformedKey) {
                try CredentialKey(algorithm: algorithm, bytes: [UInt8](repeating: 4, count: count))
            }
        }
    }

    @Test func `a stored point that is not on the curve is refused`() throws {
        var bytes = try Self.key("none.ES256").bytes
        bytes[63] ^= 1
        #expect(throws: WebAuthnFailure.malformedKey) { try CredentialKey(algorithm: .es256, bytes: bytes) }
        let zeros = [UInt8](repeating: 0, count: 64)
        #expect(throws: WebAuthnFailure.malformedKey) { try CredentialKey(algorithm: .es256, bytes: zeros) }
    }

    @Test func `numbers that are no RSA key are refused`() throws {
        let bytes = try Self.key("RS256 of 2,048 bits").bytes
        let changes: [(Int, UInt8)] = [(0, 0x7F), (255, 0), (258, 0), (256, 0)]
        for (index, value) in changes {
            var changed = bytes
            changed[index] = value
            if index == 256 { changed[257...258] = [0, 1] }
            #expect(throws: WebAuthnFailure.malformedKey) { try CredentialKey(algorithm: .rs256, bytes: changed) }
        }
    }
}
