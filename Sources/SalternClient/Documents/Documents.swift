public import Foundation

/// The result of an export.
public struct DocumentExport: Hashable, Sendable {
    /// The number of documents in the file.
    public var documents: Int
    /// The items that cannot be opened. The file does not contain them.
    public var unreadable: [ItemID]
    /// The items whose values contain attachments with content outside of the item. The file has the values without
    /// that content, so another account cannot read the attachments.
    public var incomplete: [ItemID]

    /// Creates the result of an export.
    public init(documents: Int, unreadable: [ItemID] = [], incomplete: [ItemID] = []) {
        self.documents = documents
        self.unreadable = unreadable
        self.incomplete = incomplete
    }
}

/// The result of an import.
public struct DocumentImport: Hashable, Sendable {
    /// The documents whose items did not exist.
    public var created = 0
    /// The documents whose items exist with the same content.
    public var unchanged = 0
    /// The documents whose items have other content: they were stored as copies, under other ids.
    public var copies = 0

    /// Creates the result of an import.
    public init(created: Int = 0, unchanged: Int = 0, copies: Int = 0) {
        self.created = created
        self.unchanged = unchanged
        self.copies = copies
    }
}

extension Vault {
    /// Writes every item that can be opened to a new file, as plain text. Each line is a JSON object. The last line has
    /// the number of documents, and the numbers of omitted and incomplete items. Long content is written in pieces.
    ///
    /// An item whose body is a manifest is written with its whole content. Attachments within an app's
    /// value are written without their content: save it, too (``save(_:to:progress:)``).
    ///
    /// ```swift
    /// let export = try await vault.exportDocuments(to: file)
    /// print("\(export.documents) documents, unreadable: \(export.unreadable.count)")
    /// ```
    /// - Returns: The number of documents, and the omitted items, to be shown to the user.
    /// - Throws: ``StoreError/unusable`` when the file exists.
    @discardableResult
    public func exportDocuments(to file: URL, collection: String? = nil) async throws(VaultError) -> DocumentExport {
        try await DocumentExporter(scope: owners.account.scope, items: items, owned: OwnedItems(self)).export(
            to: file, collection: collection)
    }

    /// Puts the documents of a file into the vault, under their ids. If an item has other content, the document becomes
    /// a copy under another id. Importing a file again changes nothing.
    ///
    /// Long content is read piece by piece, also in the two passes that check the file before any change.
    ///
    /// ```swift
    /// print(try await vault.importDocuments(from: file).created)
    /// ```
    /// - Throws: ``VaultError/invalidDocuments(_:)`` with the line, unless it is a complete file of documents. Nothing
    ///   was changed then. ``VaultError/unreadable`` when the file cannot be read.
    @discardableResult
    public func importDocuments(from file: URL) async throws(VaultError) -> DocumentImport {
        try await DocumentImporter(
            scope: owners.account.scope, items: items, attachments: attachments
        ).importAll(from: file)
    }
}
