public import Cryptography

extension Vault {
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
        // A body that only begins like a manifest is content that a user has put.
        guard let attachment = Attachment(body) else { return body }
        do throws(VaultError) {
            return try await content(of: attachment)
        } catch {
            throw error.ofContent
        }
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
        do throws(VaultError) {
            let count = min(source.byteCount, Int64(Attachment.markByteCount))
            if Attachment.isMarked(try Self.read(source, 0, Int(count))) { return try await attach(source).body() }
        } catch {
            throw error.ofContent
        }
        try await refuseTooLong(bodyOf: source.byteCount)
        do throws(VaultError) {
            return try Self.read(source, 0, Int(source.byteCount))
        } catch {
            throw error.ofContent
        }
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
        let before = Attachment(body)
        guard before != nil || Attachment.isMarked(content) else {
            try await refuseTooLong(content)
            return content
        }
        do throws(VaultError) {
            return try await attach(
                AttachmentSource(content), id: before?.id, properties: before?.properties ?? [:]
            ).body()
        } catch {
            throw error.ofContent
        }
    }

    /// Returns a body with the content of a source. A manifest is replaced by a manifest with the same properties, such
    /// as those of a folder's file.
    package func body(
        holding source: AttachmentSource, insteadOf body: SecureBytes
    ) async throws(VaultError) -> SecureBytes {
        guard let before = Attachment(body) else { return try await self.body(holding: source) }
        do throws(VaultError) {
            return try await attach(source, id: before.id, properties: before.properties).body()
        } catch {
            throw error.ofContent
        }
    }
}
