import Testing
import WebAuthn

struct VectorTests {
    /// The specification's cases that this server refuses: it serves no frames of other origins, and RSA keys of 2,048 bits.
    private static let refused: [String: WebAuthnFailure] = [
        "none.ES256.crossOrigin": .crossOrigin, "none.ES256.topOrigin": .crossOrigin, "packed.RS256": .malformedKey,
    ]

    @Test(arguments: Vector.all) func `registrations of the specification and of others are verified`(
        vector: Vector
    ) throws {
        let registration = RegistrationCase(vector)
        if let failure = Self.refused[vector.name] {
            #expect(throws: failure) { try registration.verify() }
            return
        }
        let passkey = try registration.verify()
        #expect(passkey.credentialID == vector.registration.credentialId.bytes)
        #expect(passkey.key.algorithm.rawValue == vector.registration.publicKeyAlgorithm)
        #expect(try CredentialKey(algorithm: passkey.key.algorithm, bytes: passkey.key.bytes) == passkey.key)
    }

    @Test(arguments: Vector.all.filter { refused[$0.name] == nil })
    func `assertions of the specification and of others are verified`(vector: Vector) throws {
        var assertion = try AssertionCase(vector)
        _ = try assertion.verify()
        assertion.signature[assertion.signature.count - 1] ^= 1
        #expect(throws: WebAuthnFailure.wrongSignature) { try assertion.verify() }
    }

    @Test func `flags of the registration are reported`() throws {
        // The specification's example sets BE, BS, AT and UP.
        let passkey = try RegistrationCase().verify()
        #expect(passkey.isBackupEligible && passkey.isBackedUp && !passkey.isUserVerified)
        #expect(passkey.signCount == 0)
        #expect(passkey.aaguid.count == 16)
    }

    @Test func `the sign count has to grow`() throws {
        var assertion = try AssertionCase(.named("ES256 with a sign count"))
        #expect(assertion.signCount == 4)
        #expect(try assertion.verify().signCount == 5)
        for stored in [5, 6, UInt32.max] {
            assertion.signCount = stored
            #expect(throws: WebAuthnFailure.signCountDidNotGrow) { try assertion.verify() }
        }
    }

    @Test func `a sign count that becomes zero is refused`() throws {
        var assertion = try AssertionCase()
        _ = try assertion.verify()
        assertion.signCount = 1
        #expect(throws: WebAuthnFailure.signCountDidNotGrow) { try assertion.verify() }
    }

    @Test func `user verification that was asked for has to be there`() throws {
        var assertion = try AssertionCase(.named("none.ES256"))
        assertion.requiresUserVerification = true
        #expect(throws: WebAuthnFailure.userNotVerified) { try assertion.verify() }
        let verified = Vector.all.filter {
            $0.assertion.authenticatorData.bytes[32] & 4 != 0 && Self.refused[$0.name] == nil
        }
        #expect(!verified.isEmpty)
        for vector in verified {
            var assertion = try AssertionCase(vector)
            assertion.requiresUserVerification = true
            #expect(try assertion.verify().isUserVerified)
        }
    }
}
