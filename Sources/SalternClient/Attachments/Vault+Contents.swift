public import Cryptography

extension Vault {
    /// An item with its whole content: what its manifest names, where its body is one, and its body otherwise. Nil when
    /// there is none. Long content is fetched.
    ///
    /// ```swift
    /// if let item = try await vault.wholeItem(id) { print("\(item.body.count) bytes") }
    /// ```
    public func wholeItem(_ id: ItemID) async throws(VaultError) -> PlainItem? {
        guard let item = try item(id) else { return nil }
        return PlainItem(title: item.title, body: try await wholeContent(of: item.body))
    }

    /// The content that a body stands for.
    ///
    /// ```swift
    /// if let item = try await vault.item(id) { print(try await vault.wholeContent(of: item.body).count) }
    /// ```
    public func wholeContent(of body: SecureBytes) async throws(VaultError) -> SecureBytes {
        // What only begins like a manifest is content: it opened, so it is what somebody has put.
        guard let attachment = Attachment(body) else { return body }
        do throws(VaultError) {
            return try await content(of: attachment)
        } catch {
            throw error.ofContent
        }
    }

    /// The body of an item that is to have this content: the content itself, but in a manifest of its own when it begins
    /// like one, so that nobody takes it for what it says.
    ///
    /// ```swift
    /// if let item = try await vault.item(id) {
    ///     let body = try await vault.body(holding: item.body)
    ///     try await vault.put(PlainItem(title: "Copy", body: body), .random(), in: "files")
    /// }
    /// ```
    /// - Throws: ``VaultError/noRoom(_:)`` for what is longer than the plan allows in an item. Make an attachment of it
    ///   (``attach(_:id:properties:progress:)``).
    public func body(holding content: SecureBytes) async throws(VaultError) -> SecureBytes {
        try await body(holding: content, insteadOf: SecureBytes(copying: [UInt8]()))
    }

    /// Returns the body of an item that is to have the content of a source. What is too long is refused before it is read.
    ///
    /// ```swift
    /// let body = try await vault.body(holding: AttachmentSource(file: file))
    /// try await vault.put(PlainItem(title: file.lastPathComponent, body: body), id, in: "files")
    /// ```
    /// - Throws: ``VaultError/noRoom(_:)`` for what is longer than the plan allows in an item.
    ///   ``VaultError/unreadable`` when the source cannot be read.
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

    /// A body with other content: a manifest again when it was one, with the same properties.
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
}
