internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import WebAuthn

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
