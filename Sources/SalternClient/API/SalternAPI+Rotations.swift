/// An item that is sealed with the new key.
public struct StagedItem: Encodable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The revision of the item that was opened.
    public let ifRevision: Revision
    /// The format of the newly sealed bytes.
    public let format: String
    /// The iterations of the item's own sealing, for formats that derive a key from a password.
    public let iterations: Int?
    /// The newly sealed title; nil for an item without one.
    public let title: Base64Bytes?
    /// The newly sealed body.
    public let body: Base64Bytes

    /// Creates a staged item from newly sealed bytes.
    public init(
        id: ItemID, ifRevision: Revision, format: String, iterations: Int? = nil, title: [UInt8]?, body: [UInt8]
    ) {
        self.id = id
        self.ifRevision = ifRevision
        self.format = format
        self.iterations = iterations
        self.title = title.map(Base64Bytes.init)
        self.body = Base64Bytes(body)
    }
}

extension SalternAPI {
    /// Opens a rotation (`POST /v1/rotations`).
    public func openRotation(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) -> RotationReply {
        try await call(
            Self.request(.post, "/v1/rotations", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// Stages items of a rotation (`PUT /v1/rotations/{id}/items`).
    public func stageItems(
        _ items: [StagedItem], in rotation: RotationID, _ token: Token
    ) async throws(APIError) -> StagedReply {
        struct Body: Encodable { let items: [StagedItem] }
        return try await call(
            Self.request(.put, "/v1/rotations/\(rotation)/items", token: token, Body(items: items)))
    }

    /// Commits a rotation, which can take minutes (`POST /v1/rotations/{id}/commit`).
    public func commitRotation(
        _ rotation: RotationID, _ new: NewCredential, current: SecretBytes, _ token: Token
    ) async throws(APIError) -> RotationCommitReply {
        var request = try Self.request(
            .post, "/v1/rotations/\(rotation)/commit", token: token, CredentialBody(new, current: current))
        request.timeout = .seconds(620)
        request.silence = .seconds(620)
        // The problem lists each item that is not staged yet.
        request.replyLimit = Self.longReplyLimit
        return try await call(request)
    }

    /// Discards a rotation (`DELETE /v1/rotations/{id}`).
    public func discardRotation(_ rotation: RotationID, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/rotations/\(rotation)", token: token.text))
    }
}
