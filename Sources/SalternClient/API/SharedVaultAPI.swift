internal import Cryptography
public import Foundation

/// The number and the hash of the latest entry of a log.
public struct VaultHead: Codable, Hashable, Sendable {
    /// The number of the entry, from 1.
    public let number: UInt64
    /// The hash of the entry, 32 bytes.
    public let hash: Base64Bytes

    /// Creates a head.
    public init(number: UInt64, hash: [UInt8]) {
        self.number = number
        self.hash = Base64Bytes(hash)
    }
}

/// A shared vault, as the server lists it to one of its members.
public struct VaultDescription: Decodable, Sendable {
    /// The used part of the limits.
    public struct Usage: Decodable, Sendable {
        /// The number of items.
        public let items: Int64
        /// The sealed bytes of the items.
        public let bytes: Int64
    }

    /// The limits of the owner's plan.
    public struct Limits: Decodable, Sendable {
        /// The maximum number of items.
        public let items: Int64
        /// The maximum of one item, in sealed bytes.
        public let itemBytes: Int64
        /// The maximum of all items, in sealed bytes.
        public let bytes: Int64
        /// The maximum number of members.
        public let members: Int64
    }

    /// The id of the vault.
    public let id: SharedVaultID
    /// The account's member id.
    public let memberId: MemberID
    /// The role: `reader`, `writer` or `manager`.
    public let role: String
    /// True when the vault counts against this account's plan.
    public let owner: Bool
    /// The vault's revision at its last change.
    public let revision: Revision
    /// The head of the log.
    public let head: VaultHead
    /// True when a former member has the present key.
    public let rotationDue: Bool
    /// The end of the period in which missing entries are put back; nil unless the database was restored.
    public let recoveringUntil: Date?
    /// True when the server has no box with the present key for this account.
    public let boxMissing: Bool?
    /// The used part of the limits.
    public let usage: Usage
    /// The limits of the owner's plan.
    public let limits: Limits
    /// The members. Nil in a list.
    public let members: [VaultSeat]?
}

/// The unsigned statements of the server about a member of a shared vault.
public struct VaultSeat: Codable, Hashable, Sendable {
    /// A head with the signature of a member that has seen it.
    public struct Seen: Codable, Hashable, Sendable {
        /// The number of the entry.
        public let number: UInt64
        /// The hash of the entry.
        public let hash: Base64Bytes
        /// The signature by the member.
        public let signature: Base64Bytes
    }

    /// The member.
    public let id: MemberID
    /// True when the account is locked or deleted.
    public let departed: Bool
    /// True when the server has no box with the present key for the member.
    public let boxMissing: Bool?
    /// The latest head that the member has signed.
    public let seen: Seen?
}

/// The key of a generation, sealed for one member or under the next key.
public struct VaultKeyBox: Codable, Hashable, Sendable {
    /// The member; nil in a reply with the caller's own boxes.
    public var member: MemberID?
    /// The number of the generation; nil in a request with an entry.
    public var generation: UInt64?
    /// The sealed key.
    public var box: Base64Bytes
}

/// The key before a generation, sealed under the key of the generation.
public struct VaultPreviousKey: Codable, Hashable, Sendable {
    /// The number of the generation.
    public let generation: UInt64
    /// The sealed key.
    public let key: Base64Bytes

    /// Creates a sealed key.
    public init(generation: UInt64, key: [UInt8]) {
        self.generation = generation
        self.key = Base64Bytes(key)
    }
}

/// A page of the log of a shared vault, with the caller's keys.
public struct VaultLogPage: Decodable, Sendable {
    /// The entries, in order.
    public let entries: [Base64Bytes]
    /// True when more entries follow.
    public let more: Bool
    /// The caller's boxes.
    public let boxes: [VaultKeyBox]
    /// The sealed previous keys, the latest first.
    public let previousKeys: [VaultPreviousKey]
    /// The numbers of the `seal` entries with a stored list.
    public let seals: [UInt64]?
}

/// An entry, with everything that is stored with it.
public struct VaultEntryRequest: Encodable, Sendable {
    /// The bytes of the entry.
    public var entry: Base64Bytes
    /// For a new generation: a box for each member.
    public var boxes: [VaultKeyBox]?
    /// For a new generation: the key before, sealed under the new one.
    public var previousKey: Base64Bytes?
    /// For a seal: the list.
    public var list: Base64Bytes?
    /// For a removal: the highest revision that this device has.
    public var ifRevision: Revision?
    /// For new keys of a member: the present password key.
    public var currentPasswordKey: SecretBytes?

    /// Creates a request with an entry alone.
    public init(_ entry: [UInt8]) { self.entry = Base64Bytes(entry) }
}

/// The place of an entry in the log.
public struct VaultEntryReply: Decodable, Sendable {
    /// The number of the entry.
    public let number: UInt64
    /// The hash of the entry.
    public let hash: Base64Bytes
    /// The vault's new revision; nil for a repeated request.
    public let revision: Revision?
}

/// An invitation, as its link opens it.
public struct VaultInvitationReply: Decodable, Sendable {
    /// The vault.
    public let vault: SharedVaultID
    /// The sealed names.
    public let preview: Base64Bytes
    /// The whole log.
    public let entries: [Base64Bytes]
}

/// The outcome of a join.
public struct VaultJoinReply: Decodable, Sendable {
    /// The vault.
    public let vault: SharedVaultID
    /// The number of the entry that joined.
    public let number: UInt64
    /// The hash of the entry.
    public let hash: Base64Bytes
    /// The present key, sealed for the holders of the link; nil for a repeated request after the end of the invitation.
    public let keyBox: Base64Bytes?
}

/// An open invitation, as the server lists it to managers.
public struct VaultInvitationHeader: Decodable, Sendable {
    /// The id of the invitation.
    public let id: InvitationID
    /// The number of times that its link was opened.
    public let openings: Int64
    /// The time at which it ends.
    public let expiresAt: Date
}

extension SalternAPI {
    /// The limit of a page of a log, or of a whole log in an invitation, in bytes.
    private static let logReplyLimit = 12 << 20

    private static func path(_ vault: SharedVaultID, _ rest: String = "") -> String { "/v1/vaults/\(vault)\(rest)" }

    // MARK: Vaults

    /// Founds a shared vault by the first entry of its log (`POST /v1/vaults`). A repeated request has the same result.
    public func createVault(_ entry: [UInt8], _ token: Token) async throws(APIError) -> VaultEntryReply {
        try await call(Self.request(.post, "/v1/vaults", token: token, VaultEntryRequest(entry)))
    }

    /// Lists the shared vaults of which the account is a member (`GET /v1/vaults`).
    public func listVaults(_ token: Token) async throws(APIError) -> [VaultDescription] {
        struct Reply: Decodable { let vaults: [VaultDescription] }
        return try await call(HTTPRequest(.get, "/v1/vaults", token: token.text), as: Reply.self).vaults
    }

    /// Returns a shared vault with its members (`GET /v1/vaults/{vault}`).
    public func getVault(_ vault: SharedVaultID, _ token: Token) async throws(APIError) -> VaultDescription {
        try await call(HTTPRequest(.get, Self.path(vault), token: token.text))
    }

    /// Deletes a shared vault of the account with all its items (`DELETE /v1/vaults/{vault}`).
    public func deleteVault(_ vault: SharedVaultID, _ token: Token) async throws(APIError) {
        var request = HTTPRequest(.delete, Self.path(vault), token: token.text)
        request.timeout = .seconds(620)
        request.silence = .seconds(620)
        try await call(request)
    }

    /// Takes over a shared vault by an `accept` entry (`POST /v1/vaults/{vault}/owner`).
    public func acceptOwnership(
        _ vault: SharedVaultID, _ entry: [UInt8], _ token: Token
    ) async throws(APIError) -> VaultEntryReply {
        try await call(Self.request(.post, Self.path(vault, "/owner"), token: token, VaultEntryRequest(entry)))
    }

    // MARK: The log

    /// Returns a page of the log (`GET /v1/vaults/{vault}/log`).
    /// - Parameter number: The number of the last known entry; 0 for none.
    public func getVaultLog(
        _ vault: SharedVaultID, after number: UInt64, _ token: Token
    ) async throws(APIError) -> VaultLogPage {
        let target = Self.target(Self.path(vault, "/log"), [("after", String(number))])
        return try await call(HTTPRequest(.get, target, token: token.text, replyLimit: Self.logReplyLimit))
    }

    /// Appends an entry (`POST /v1/vaults/{vault}/log`). A repeated request has the same result.
    public func appendEntry(
        _ vault: SharedVaultID, _ entry: VaultEntryRequest, _ token: Token
    ) async throws(APIError) -> VaultEntryReply {
        try await call(Self.request(.post, Self.path(vault, "/log"), token: token, entry))
    }

    /// Puts entries back that a restored database lacks (`PUT /v1/vaults/{vault}/log`).
    public func putEntriesBack(
        _ vault: SharedVaultID, _ entries: [[UInt8]], _ token: Token
    ) async throws(APIError) -> VaultEntryReply {
        struct Body: Encodable { let entries: [Base64Bytes] }
        return try await call(
            Self.request(
                .put, Self.path(vault, "/log"), token: token, Body(entries: entries.map(Base64Bytes.init))))
    }

    /// Ends the period after a restored database in which entries are put back (`POST /v1/vaults/{vault}/recovered`).
    public func endRecovery(
        _ vault: SharedVaultID, _ head: VaultHead, _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable { let head: VaultHead }
        try await call(Self.request(.post, Self.path(vault, "/recovered"), token: token, Body(head: head)))
    }

    /// Binds a member whose join was put back to this account (`POST /v1/vaults/{vault}/claim`).
    public func claimMember(
        _ vault: SharedVaultID, _ member: MemberID, _ head: VaultHead, signature: [UInt8], _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let member: MemberID
            let head: VaultHead
            let signature: Base64Bytes
        }
        let body = Body(member: member, head: head, signature: Base64Bytes(signature))
        try await call(Self.request(.post, Self.path(vault, "/claim"), token: token, body))
    }

    /// Returns the list of a seal (`GET /v1/vaults/{vault}/seals/{number}`).
    public func getSealList(
        _ vault: SharedVaultID, _ number: UInt64, _ token: Token
    ) async throws(APIError) -> [UInt8] {
        struct Reply: Decodable { let list: Base64Bytes }
        let request = HTTPRequest(
            .get, Self.path(vault, "/seals/\(number)"), token: token.text, replyLimit: Self.logReplyLimit)
        return try await call(request, as: Reply.self).list.bytes
    }

    /// Stores a lost list of a seal again (`PUT /v1/vaults/{vault}/seals/{number}`).
    public func putSealList(
        _ vault: SharedVaultID, _ number: UInt64, _ list: [UInt8], _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable { let list: Base64Bytes }
        let path = Self.path(vault, "/seals/\(number)")
        try await call(Self.request(.put, path, token: token, Body(list: Base64Bytes(list))))
    }

    // MARK: Keys and heads

    /// Stores boxes of the present generation and sealed previous keys again (`PUT /v1/vaults/{vault}/boxes`).
    public func putVaultBoxes(
        _ vault: SharedVaultID, generation: UInt64, _ boxes: [VaultKeyBox], _ previousKeys: [VaultPreviousKey],
        _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let generation: UInt64
            let boxes: [VaultKeyBox]
            let previousKeys: [VaultPreviousKey]
        }
        let body = Body(generation: generation, boxes: boxes, previousKeys: previousKeys)
        try await call(Self.request(.put, Self.path(vault, "/boxes"), token: token, body))
    }

    /// Reports that the caller's box cannot be opened (`DELETE /v1/vaults/{vault}/boxes/mine`).
    public func removeOwnBox(_ vault: SharedVaultID, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, Self.path(vault, "/boxes/mine"), token: token.text))
    }

    /// Stores the signed head that the caller has seen (`PUT /v1/vaults/{vault}/seen`).
    public func putSeenHead(
        _ vault: SharedVaultID, _ head: VaultHead, signature: [UInt8], _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let number: UInt64
            let hash: Base64Bytes
            let signature: Base64Bytes
        }
        let body = Body(number: head.number, hash: head.hash, signature: Base64Bytes(signature))
        try await call(Self.request(.put, Self.path(vault, "/seen"), token: token, body))
    }

    // MARK: Invitations

    /// Appends an `invite` entry and stores the sealed content of its link (`POST /v1/vaults/{vault}/invitations`).
    public func createInvitation(
        _ vault: SharedVaultID, _ entry: [UInt8], tokenHash: [UInt8], preview: [UInt8], keyBox: [UInt8],
        _ token: Token
    ) async throws(APIError) -> VaultEntryReply {
        struct Body: Encodable {
            let entry: Base64Bytes
            let tokenHash: Base64Bytes
            let preview: Base64Bytes
            let keyBox: Base64Bytes
        }
        let body = Body(
            entry: Base64Bytes(entry), tokenHash: Base64Bytes(tokenHash), preview: Base64Bytes(preview),
            keyBox: Base64Bytes(keyBox))
        return try await call(Self.request(.post, Self.path(vault, "/invitations"), token: token, body))
    }

    /// Lists the open invitations for managers (`GET /v1/vaults/{vault}/invitations`).
    public func listInvitations(
        _ vault: SharedVaultID, _ token: Token
    ) async throws(APIError) -> [VaultInvitationHeader] {
        struct Reply: Decodable { let invitations: [VaultInvitationHeader] }
        let request = HTTPRequest(.get, Self.path(vault, "/invitations"), token: token.text)
        return try await call(request, as: Reply.self).invitations
    }

    /// Returns an invitation to the holder of its link, without a session (`GET /v1/invitations/{id}`).
    /// - Parameter token: The token of the link, 32 bytes.
    public func openInvitation(
        _ id: InvitationID, token: SecureBytes
    ) async throws(APIError) -> VaultInvitationReply {
        try await call(
            HTTPRequest(
                .get, "/v1/invitations/\(id)", token: Self.bearer(token), replyLimit: Self.logReplyLimit))
    }

    /// Returns `slv_` and base64url of a link's token.
    private static func bearer(_ token: SecureBytes) -> SecureBytes {
        let prefix = Array("slv_".utf8)
        var count = 0
        // The encoder needs room for padding, which the text does not have.
        let text = SecureBytes(count: prefix.count + Base64.encodedCount(token.count)) { text in
            text.copyBytes(from: prefix)
            count = prefix.count
            count += Base64URL.encode(token, into: UnsafeMutableRawBufferPointer(rebasing: text[prefix.count...]))
        }
        return text.withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    /// Joins a shared vault (`POST /v1/invitations/{id}/acceptance`). A repeated request has the same result.
    public func acceptInvitation(
        _ id: InvitationID, _ entry: [UInt8], token: SecretBytes, _ session: Token
    ) async throws(APIError) -> VaultJoinReply {
        struct Body: Encodable {
            let entry: Base64Bytes
            let token: SecretBytes
        }
        let body = Body(entry: Base64Bytes(entry), token: token)
        return try await call(
            Self.request(.post, "/v1/invitations/\(id)/acceptance", token: session, body))
    }
}
