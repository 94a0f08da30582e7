internal import Cryptography
internal import Postgres

/// Identifies the account and the session of a token, sealed for the server alone: the claim `jti`.
///
/// An inspection opens it, so the server stores nothing for a token. The pairwise key never changes, and AES-GCM allows
/// about 2^32 random nonces under one key. So each identifier has its own key, derived from 12 random bytes in front of
/// it.
struct TokenIdentifier: Equatable {
    let accountID: AccountID
    let sessionID: SessionID

    private static let saltByteCount = 12

    /// 96 characters of base64url.
    func sealed(for audience: AudienceName, with key: PairwiseKey) throws(AESGCM.Failure) -> String {
        let salt = SecureRandom.bytes(Self.saltByteCount)
        let sealed = try AESGCM.seal(
            accountID.uuid.bytes + sessionID.uuid.bytes, using: Self.key(salt, audience, key),
            authenticating: audience.description.utf8)
        return Base64URL.encodeToString(salt + sealed)
    }

    init(accountID: AccountID, sessionID: SessionID) {
        self.accountID = accountID
        self.sessionID = sessionID
    }

    /// Opens the text that ``sealed(for:with:)`` returned for the same audience. Returns nil for anything else.
    init?(_ text: String, for audience: AudienceName, with key: PairwiseKey) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count > Self.saltByteCount,
            let opened = try? AESGCM.open(
                Array(bytes[Self.saltByteCount...]),
                using: Self.key(Array(bytes[..<Self.saltByteCount]), audience, key),
                authenticating: audience.description.utf8)
        else { return nil }
        let ids: (account: UUID, session: UUID)? = opened.withUnsafeBytes { bytes in
            guard bytes.count == 2 * UUID.byteCount,
                let account = UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<UUID.byteCount])),
                let session = UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[UUID.byteCount...]))
            else { return nil }
            return (account, session)
        }
        guard let ids else { return nil }
        self.init(accountID: AccountID(ids.account), sessionID: SessionID(ids.session))
    }

    private static func key(_ salt: [UInt8], _ audience: AudienceName, _ key: PairwiseKey) -> SecureBytes {
        SecureBytes(copying: key.code(.tokenIdentifier, for: audience, salt))
    }
}
