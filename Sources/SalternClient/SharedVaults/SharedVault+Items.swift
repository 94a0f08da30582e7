extension SharedVault {
    /// The items of the vault on this device: lists, unsent edits, the trash, replaced versions, notices, held
    /// deletions and attachments. ``SharedVault/collection(_:of:schema:)`` reads and writes them as values of a type.
    ///
    /// ```swift
    /// for shared in try await vault.shared.all() {
    ///     print(shared.name, try await shared.items.unsentCount(), try await shared.items.notices().count)
    /// }
    /// ```
    public var items: OwnedItems { OwnedItems(vault, of: .vault(id)) }
}
