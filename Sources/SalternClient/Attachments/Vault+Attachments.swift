public import Cryptography
public import Foundation

extension Vault {
    /// Creates an attachment's manifest, and sends long content to the server. Then put ``Attachment/body()``, or a
    /// value that contains the attachment, in an item. Do so before creating the next version under its id: content
    /// that no item names is removed.
    ///
    /// When the server is unreachable, long content waits sealed on this device, as edits do, within
    /// ``AttachmentStorage/waitingByteLimit``. The next ``sync()`` sends it, and then the items that name it. Content
    /// that fits in an item never needs network.
    ///
    /// An interrupted or cancelled call continues when it is repeated with the same id. It adds only pieces that are
    /// neither on the server nor on this device. ``abandonAttachment(_:)`` is for callers that do not continue. Without
    /// an id a call cannot be continued, so its pieces are taken back.
    ///
    /// If the server is reachable, its plan is checked first for enough room for the whole attachment. Pieces are taken
    /// back when the room is exhausted later.
    ///
    /// Example: "Attachments" in docs/app.md.
    /// - Parameters:
    ///   - id: The id of the previous version, if there is one: only changed pieces are added. Otherwise an id that the
    ///     caller has generated and keeps until the call has completed.
    ///   - progress: Is called after each piece.
    /// - Throws: ``VaultError/noRoom(_:)`` for a limit of the plan, or of this device
    ///   (``PlanShortage/Limit/waitingBytes``). ``VaultError/unavailable(_:)`` when the connection is lost and the
    ///   other pieces have no room to wait.
    public func attach(
        _ source: AttachmentSource, id: ItemID? = nil, properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        try await attach(source, AttachmentDraft(id), properties: properties, progress: progress)
    }

    func attach(
        _ source: AttachmentSource, _ draft: AttachmentDraft, properties: [String: String],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        try await attachments.attach(source, draft, properties: properties, progress: progress)
    }

    /// Takes back the chunks that ``attach(_:id:properties:progress:)`` has sent under an id of the caller, when the
    /// caller does not continue.
    ///
    /// It removes only chunks that this device created and that no manifest on this device names. Chunks that cannot be
    /// removed now, for example without network, are removed by the next ``sync()``.
    ///
    /// ```swift
    /// do {
    ///     _ = try await vault.attach(AttachmentSource(file: file), id: id)
    /// } catch {
    ///     try await vault.abandonAttachment(id)
    /// }
    /// ```
    public func abandonAttachment(_ id: ItemID) async throws(VaultError) {
        try await attachments.abandoned.takeBack(id)
    }

    /// Returns one piece of the content, of ``Attachment/pieceCount``. A piece that waits or has a copy on this device
    /// is read without network. Another piece is fetched, and a copy is kept. After an interruption the reader
    /// continues with the missing piece.
    ///
    /// ```swift
    /// let attachment = try await vault.attach(AttachmentSource(file: file))
    /// for index in 0..<attachment.pieceCount { print(try await vault.piece(index, of: attachment).count) }
    /// ```
    public func piece(_ index: Int, of attachment: Attachment) async throws(VaultError) -> SecureBytes {
        try await attachments.reader.piece(index, of: attachment, keepsCopy: true)
    }

    /// - Parameter keepsCopy: True to keep a copy of a fetched piece on this device.
    func piece(
        _ index: Int, of attachment: Attachment, keepsCopy: Bool
    ) async throws(VaultError) -> SecureBytes {
        try await attachments.reader.piece(index, of: attachment, keepsCopy: keepsCopy)
    }

    /// Returns the number of pieces at the start of an attachment that `source` already contains.
    ///
    /// An interrupted download continues with the piece of this number. Each piece in `source` is compared with its
    /// name in the manifest, which is derived from its content. A file with other content therefore has no such pieces.
    ///
    /// ```swift
    /// let attachment = try await vault.attach(AttachmentSource(file: file))
    /// let next = try await vault.fetchedPieces(of: attachment, in: AttachmentSource(file: file))
    /// for index in next..<attachment.pieceCount { print(try await vault.piece(index, of: attachment).count) }
    /// ```
    /// - Parameter source: The result of an earlier download. It can be shorter or longer than the attachment.
    /// - Throws: ``VaultError/locked``.
    public func fetchedPieces(of attachment: Attachment, in source: AttachmentSource) async throws(VaultError) -> Int {
        try await attachments.reader.fetchedPieces(of: attachment, in: source)
    }

    /// Returns the whole content, which has to fit in memory.
    ///
    /// Example: "Attachments" in docs/app.md.
    public func content(
        of attachment: Attachment, progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> SecureBytes {
        try await attachments.reader.content(of: attachment, progress: progress)
    }

    // MARK: Whole content

    /// Returns an item with its whole content: that of the attachment if its body is a manifest, otherwise its body.
    /// Nil when there is none. Long content is fetched.
    ///
    /// ```swift
    /// if let item = try await vault.wholeItem(id) { print("\(item.body.count) bytes") }
    /// ```
    public func wholeItem(_ id: ItemID) async throws(VaultError) -> PlainItem? {
        guard let item = try item(id) else { return nil }
        return PlainItem(title: item.title, body: try await wholeContent(of: item.body))
    }

    /// Returns the content of a body: that of the attachment if it is a manifest, otherwise the body itself.
    ///
    /// ```swift
    /// if let item = try await vault.item(id) { print(try await vault.wholeContent(of: item.body).count) }
    /// ```
    public func wholeContent(of body: SecureBytes) async throws(VaultError) -> SecureBytes {
        try await owners.account.wholeContent(of: body)
    }

    /// Returns a body for an item with this content: the content itself, or a manifest if the content begins like a
    /// manifest.
    ///
    /// ```swift
    /// if let item = try await vault.item(id) {
    ///     let body = try await vault.body(holding: item.body)
    ///     try await vault.put(PlainItem(title: "Copy", body: body), .random(), in: "files")
    /// }
    /// ```
    /// - Throws: ``VaultError/noRoom(_:)`` for content that is longer than an item of the plan. Make an attachment of
    ///   it (``attach(_:id:properties:progress:)``).
    public func body(holding content: SecureBytes) async throws(VaultError) -> SecureBytes {
        try await body(holding: content, insteadOf: SecureBytes(copying: [UInt8]()))
    }

    /// Returns a body for an item with the content of a source. Content that is too long is rejected before it is read.
    ///
    /// ```swift
    /// let body = try await vault.body(holding: AttachmentSource(file: file))
    /// try await vault.put(PlainItem(title: file.lastPathComponent, body: body), id, in: "files")
    /// ```
    /// - Throws:
    ///   ``VaultError/noRoom(_:)`` for content that is longer than an item of the plan. ``VaultError/unreadable`` when
    ///   the source cannot be read.
    public func body(holding source: AttachmentSource) async throws(VaultError) -> SecureBytes {
        try await owners.account.body(holding: source)
    }

    /// Returns a body with other content. A manifest is replaced by a manifest with the same properties.
    ///
    /// ```swift
    /// if let item = try await vault.item(id), let other = try await vault.wholeItem(id) {
    ///     print(try await vault.body(holding: other.body, insteadOf: item.body).count)
    /// }
    /// ```
    public func body(holding content: SecureBytes, insteadOf body: SecureBytes) async throws(VaultError) -> SecureBytes
    {
        try await owners.account.body(holding: content, insteadOf: body)
    }

    /// Returns a body with the content of a source. A manifest is replaced by a manifest with the same properties, such
    /// as those of a folder's file.
    package func body(
        holding source: AttachmentSource, insteadOf body: SecureBytes
    ) async throws(VaultError) -> SecureBytes {
        try await owners.account.body(holding: source, insteadOf: body)
    }

    // MARK: Storage

    /// The sealed bytes of attachments' chunks on this device.
    ///
    /// ```swift
    /// let usage = try await vault.attachmentUsage()
    /// print("\(usage.waitingByteCount) bytes wait")
    /// ```
    public func attachmentUsage() throws(VaultError) -> AttachmentUsage {
        try attachments.copies.usage()
    }

    /// Removes the copies of content that the server has. Content that waits to be sent stays.
    ///
    /// ```swift
    /// try await vault.removeAttachmentCopies()
    /// ```
    public func removeAttachmentCopies() throws(VaultError) {
        try attachments.copies.removeAll()
    }

    /// Removes chunks of the account that no item, deleted item in the trash, unsent change, base of a change or
    /// replaced version names. A chunk is removed after it had no name for as long as a deleted item can be restored,
    /// here or on the server.
    ///
    /// While any item on this device or on the server cannot be read, no chunk is removed: the item may be a manifest.
    ///
    /// ```swift
    /// let count = try await vault.sweepChunks()
    /// print("removed \(count) chunks")
    /// ```
    /// - Returns: The number of removed chunks.
    @discardableResult
    public func sweepChunks() async throws(VaultError) -> Int {
        try await syncing.sweep()
    }
}

extension Vault {
    /// Creates an attachment from a file, which is read piece by piece: see ``attach(_:id:properties:progress:)``.
    ///
    /// ```swift
    /// let photo = try await vault.attach(file: url, properties: ["name": url.lastPathComponent])
    /// try await notes.put(Note(text: "Cadiz", photo: photo), id)
    /// ```
    /// - Throws: ``VaultError/sourceFailed`` when the file cannot be opened or read, and the errors of that call.
    public func attach(
        file: URL, id: ItemID? = nil, properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        let source: AttachmentSource
        do { source = try AttachmentSource(file: file) } catch { throw .sourceFailed }
        return try await attach(source, id: id, properties: properties, progress: progress)
    }

    /// Returns the whole content of an attachment as data. It has to fit in memory. See ``content(of:progress:)``.
    ///
    /// ```swift
    /// let image = UIImage(data: try await vault.data(of: note.photo))
    /// ```
    public func data(of attachment: Attachment) async throws(VaultError) -> Data {
        Data(try await content(of: attachment))
    }

    /// Writes the content of an attachment to a file, piece by piece. The complete file replaces an existing one; after
    /// an error nothing has changed. Only the owner of the file can read it.
    ///
    /// ```swift
    /// try await vault.save(note.photo, to: .temporaryDirectory.appending(path: "photo.jpg"))
    /// ```
    /// - Parameter progress: Is called after each piece.
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/unusable`` or ``StoreError/diskFull`` when the file cannot
    ///   be written, and the errors of ``piece(_:of:)``.
    public func save(
        _ attachment: Attachment, to file: URL, progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) {
        let part = file.deletingLastPathComponent().appending(path: ".\(ItemID.random()).part")
        let new = try NewFile(part)
        do throws(VaultError) {
            var count: Int64 = 0
            for index in 0..<attachment.pieceCount {
                let piece = try await piece(index, of: attachment)
                try new.append(piece.withUnsafeBytes { [UInt8]($0) })
                count += Int64(piece.count)
                progress(AttachmentProgress(byteCount: count, total: attachment.byteCount))
            }
            try new.finish()
            guard rename(part.path, file.path) == 0, FileFolder.sync(of: file.path) else { throw .store(.unusable) }
        } catch {
            new.remove()
            throw error
        }
    }
}
