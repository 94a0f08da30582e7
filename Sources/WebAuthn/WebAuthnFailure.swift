/// The reason why a registration or an assertion is rejected.
///
/// Replies to log-ins do not contain it.
public enum WebAuthnFailure: String, Error, Sendable, CaseIterable {
    // The client data.
    case clientDataTooLong = "client_data_too_long"
    case clientDataMalformed = "client_data_malformed"
    case wrongType = "wrong_type"
    case wrongChallenge = "wrong_challenge"
    case wrongOrigin = "wrong_origin"
    case crossOrigin = "cross_origin"

    // CBOR (RFC 8949).
    case malformedCBOR = "malformed_cbor"
    case tooLong = "too_long"
    case tooDeep = "too_deep"
    case tooManyItems = "too_many_items"
    case indefiniteLength = "indefinite_length"
    case tagged = "tagged"
    case duplicateKey = "duplicate_key"
    case trailingBytes = "trailing_bytes"

    // The attestation object and the authenticator data.
    case malformedAttestationObject = "malformed_attestation_object"
    case malformedAuthenticatorData = "malformed_authenticator_data"
    case missingCredential = "missing_credential"
    case unexpectedCredential = "unexpected_credential"
    case wrongCredentialID = "wrong_credential_id"
    case wrongRelyingParty = "wrong_relying_party"
    case userNotPresent = "user_not_present"
    case userNotVerified = "user_not_verified"
    case impossibleBackup = "impossible_backup"

    // The key of the credential.
    case malformedKey = "malformed_key"
    case unsupportedAlgorithm = "unsupported_algorithm"
    case wrongAlgorithm = "wrong_algorithm"

    // An assertion.
    case wrongUserHandle = "wrong_user_handle"
    case changedBackupEligibility = "changed_backup_eligibility"
    case wrongSignature = "wrong_signature"
    case signCountDidNotGrow = "sign_count_did_not_grow"
}
