public import Foundation

extension AttachmentSource {
    /// Creates a source from data in memory.
    ///
    /// ```swift
    /// let photo = try await vault.attach(AttachmentSource(jpeg))
    /// ```
    public init(_ data: Data) { self.init(SecureBytes(data)) }

    /// Creates a source from the UTF-8 of a text.
    ///
    /// ```swift
    /// let chapter = try await vault.attach(AttachmentSource(text))
    /// ```
    public init(_ text: String) { self.init(SecureBytes(text)) }
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
