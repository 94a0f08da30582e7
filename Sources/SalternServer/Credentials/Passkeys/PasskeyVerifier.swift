internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// Verifies assertions for log-ins.
struct PasskeyVerifier: Sendable {
    /// Nil if passkeys are off.
    let relyingParty: RelyingParty?
    let challenges: PasskeyChallenges
    /// Verifies assertions of unknown passkeys. Made at the first use; the private half is discarded.
    private static let decoy = (try? P256.PrivateKey.generate()).flatMap { key in
        try? CredentialKey(algorithm: .es256, bytes: [UInt8](key.publicKey.bytes.dropFirst()))
    }

    init(_ configuration: ServiceConfiguration) {
        relyingParty = configuration.passkeys
        challenges = PasskeyChallenges(configuration.masterKey)
    }

    /// Verifies an assertion.
    /// - Parameters:
    ///   - passkey: The stored state, or nil for an unknown passkey. Verification takes place in any case.
    ///   - isAlone: True if the passkey opens a session without the password key.
    /// - Throws: ``WrongPasskey``, or ``PasskeyProblem/off``.
    func verify(
        _ response: AuthenticationResponse, of accountID: AccountID, _ passkey: UsablePasskey?,
        for purpose: PasskeyChallenge.Purpose, isAlone: Bool, now: Timestamp
    ) throws -> (challenge: PasskeyChallenge, verified: Assertion.Verified) {
        guard let relyingParty else { throw PasskeyProblem.off }
        do throws(WebAuthnFailure) {
            let assertion = try response.assertion()
            let bytes = assertion.clientData.challenge
            let challenge = challenges.challenge(bytes, for: purpose, now: now)
            let key = passkey.flatMap { passkey in
                CredentialKey.Algorithm(rawValue: Int(passkey.algorithm)).flatMap {
                    try? CredentialKey(algorithm: $0, bytes: passkey.publicKey)
                }
            }
            guard let used = key ?? Self.decoy else { throw .wrongSignature }
            let verified = try assertion.verify(
                for: relyingParty, challenge: bytes, requiresUserVerification: isAlone,
                Assertion.Expectation(
                    key: used, signCount: UInt32(clamping: passkey?.signCount ?? 0),
                    isBackupEligible: passkey?.isBackupEligible ?? assertion.isBackupEligible,
                    userHandle: accountID.uuid.bytes, requiresUserHandle: isAlone))
            guard let challenge, key != nil else { throw .wrongChallenge }
            return (challenge, verified)
        } catch {
            throw WrongPasskey(accountID: passkey == nil ? nil : accountID, failure: error)
        }
    }
}
