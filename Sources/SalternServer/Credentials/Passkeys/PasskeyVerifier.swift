internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// Verifies assertions for log-ins.
struct PasskeyVerifier: Sendable {
    /// Nil if passkeys are off.
    let relyingParty: RelyingParty?
    let challenges: PasskeyChallenges
    /// The public key of no passkey, with which assertions of unknown passkeys are verified. Made at the first use; the
    /// private half is discarded.
    private static let decoy = (try? P256.PrivateKey.generate()).map { [UInt8]($0.publicKey.bytes.dropFirst()) } ?? []

    /// The requirements of an assertion.
    enum Use: Sendable {
        /// It opens a session without the password key: the user is verified, and the passkey names the account.
        case alone
        /// It accompanies the right password key.
        case secondFactor
        /// It replaces the password key in a session: the user is verified.
        case inSession
    }

    init(_ configuration: ServiceConfiguration) {
        relyingParty = configuration.passkeys
        challenges = PasskeyChallenges(configuration.masterKey)
    }

    /// Verifies an assertion. An unknown passkey takes the same steps as a known one.
    /// - Parameters:
    ///   - passkey: The stored state, or nil for an unknown passkey.
    /// - Throws: ``WrongPasskey``, or ``PasskeyProblem/off``.
    func verify(
        _ response: AuthenticationResponse, of accountID: AccountID, _ passkey: UsablePasskey?,
        for purpose: PasskeyChallenge.Purpose, _ use: Use, now: Timestamp
    ) throws -> (challenge: PasskeyChallenge, verified: Assertion.Verified) {
        guard let relyingParty else { throw PasskeyProblem.off }
        do throws(WebAuthnFailure) {
            let assertion = try response.assertion()
            let bytes = assertion.clientData.challenge
            let challenge = challenges.challenge(bytes, for: purpose, now: now)
            let key = try CredentialKey(
                algorithm: passkey.flatMap { CredentialKey.Algorithm(rawValue: Int($0.algorithm)) } ?? .es256,
                bytes: passkey?.publicKey ?? Self.decoy)
            let verified = try assertion.verify(
                for: relyingParty, challenge: bytes, requiresUserVerification: use != .secondFactor,
                Assertion.Expectation(
                    key: key, signCount: UInt32(clamping: passkey?.signCount ?? 0),
                    isBackupEligible: passkey?.isBackupEligible ?? assertion.isBackupEligible,
                    userHandle: accountID.uuid.bytes, requiresUserHandle: use == .alone))
            guard let challenge, passkey != nil else { throw .wrongChallenge }
            return (challenge, verified)
        } catch {
            throw WrongPasskey(
                accountID: passkey == nil ? nil : accountID, failure: error, isInSession: use == .inSession)
        }
    }
}

/// The stored state of a passkey, for the comparison with an assertion.
struct UsablePasskey: Sendable, DecodableRow {
    let id: PasskeyID
    let algorithm: Int32
    let publicKey: [UInt8]
    let signCount: Int64
    let isBackupEligible: Bool
    let logsIn: Bool

    static let columns: SQLFragment =
        "k.credential_id, k.algorithm, k.public_key, k.sign_count, k.backup_eligible, k.logs_in"

    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        algorithm = try row.next()
        publicKey = try row.next()
        signCount = try row.next()
        isBackupEligible = try row.next()
        logsIn = try row.next()
    }
}

/// Finds a passkey of an account, for a caller with the right password key or a session.
struct FindUsablePasskey: AccountRead {
    typealias Row = UsablePasskey

    let id: PasskeyID

    static let sql: AccountSQL<Self> = """
        SELECT \(UsablePasskey.columns) FROM saltern.passkeys k
        WHERE k.account_id = \(.account) AND k.credential_id = \(\.id)
        """
}

/// Writes the options of both ceremonies, in the JSON forms of `parseCreationOptionsFromJSON()` and
/// `parseRequestOptionsFromJSON()` (WebAuthn Level 3 §5.4 and §5.5).
enum PasskeyOptions {
    private static let timeout = JSONValue.integer(PasskeyChallenge.lifetime.components.seconds * 1_000)

    /// - Parameters:
    ///   - logsIn: True if the passkey opens sessions alone. It then has to name its account and verify its user.
    ///   - excluded: The passkeys of the account, which the same authenticator must not add again.
    static func creation(
        _ challenge: PasskeyChallenge, _ relyingParty: RelyingParty, service: String, accountID: AccountID,
        userid: Userid,
        logsIn: Bool, excluded: [PasskeyID]
    ) -> JSONValue {
        let need: JSONValue = logsIn ? "required" : "preferred"
        return [
            "rp": ["id": .string(relyingParty.id), "name": .string(service)],
            "user": [
                "id": base64URL(accountID.uuid.bytes), "name": .string(userid.string),
                "displayName": .string(userid.string),
            ],
            "challenge": base64URL(challenge.bytes),
            "pubKeyCredParams": .array(
                CredentialKey.Algorithm.allCases.map { ["type": "public-key", "alg": .integer(Int64($0.rawValue))] }),
            "timeout": timeout,
            "excludeCredentials": descriptors(excluded),
            "authenticatorSelection": [
                "residentKey": need, "requireResidentKey": .bool(logsIn), "userVerification": need,
            ],
            "attestation": "none",
            "extensions": ["prf": [:]],
        ]
    }

    /// - Parameters:
    ///   - allowed: The permitted passkeys. Empty permits any that names its account.
    ///   - verifiesUser: True if the authenticator must verify its user.
    static func request(
        _ challenge: PasskeyChallenge, _ relyingParty: RelyingParty, allowed: [PasskeyID], verifiesUser: Bool
    ) -> JSONValue {
        [
            "challenge": base64URL(challenge.bytes), "timeout": timeout, "rpId": .string(relyingParty.id),
            "allowCredentials": descriptors(allowed), "userVerification": verifiesUser ? "required" : "preferred",
        ]
    }

    private static func descriptors(_ ids: [PasskeyID]) -> JSONValue {
        .array(ids.map { ["type": "public-key", "id": .string($0.text)] })
    }

    private static func base64URL(_ bytes: [UInt8]) -> JSONValue { .string(JSONString(ascii: Base64URL.encode(bytes))) }
}
