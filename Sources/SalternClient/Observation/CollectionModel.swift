public import Observation

/// The contents of a collection for a SwiftUI list. The model follows the vault until it is signed out or the model is
/// released. While the vault is locked the model is empty.
///
/// ```swift
/// struct NotesList: View {
///     let notes: CollectionModel<Note>
///
///     var body: some View {
///         List(notes.entries) { Text($0.value.text) }
///             .toolbar { Button("New") { Task { await notes.put(Note(text: "")) } } }
///     }
/// }
/// ```
@MainActor @Observable public final class CollectionModel<Value: Codable> {
    /// The collection that the model shows.
    @ObservationIgnored public let collection: VaultCollection<Value>
    /// The contents, including the items that cannot be read.
    public private(set) var contents = CollectionContents<Value>()
    /// True when the contents were read. False at the beginning and while the vault is locked: do not show an empty
    /// list then.
    public private(set) var isLoaded = false
    /// The error of the last failed action. Set it to nil to remove it from the screen.
    public var error: (any Error)?
    @ObservationIgnored private let order: CollectionOrder<Value>
    @ObservationIgnored private var following: Task<Void, Never>?

    /// The items that can be read, in order, for `List` and `ForEach`.
    public var entries: [CollectionEntry<Value>] { contents.entries }
    /// The values of the items that can be read, in order.
    public var values: [Value] { contents.values }

    /// Creates a model that shows a collection.
    ///
    /// ```swift
    /// let notes = CollectionModel(vault.collection("notes", of: Note.self), sorted: .by(\.text))
    /// ```
    public init(_ collection: VaultCollection<Value>, sorted order: CollectionOrder<Value> = .byTitle) {
        self.collection = collection
        self.order = order
        following = Task { [weak self] in
            let nudges = await collection.vault.nudges(in: collection.name, of: collection.owner)
            for await _ in nudges {
                guard let self else { return }
                await self.reload()
            }
            self?.empty()
        }
    }

    deinit { following?.cancel() }

    private func reload() async {
        do throws(VaultError) {
            contents = try await collection.contents(sorted: order)
            isLoaded = true
        } catch {
            if case .locked = error { empty() } else { self.error = error }
        }
    }

    private func empty() {
        contents = CollectionContents()
        isLoaded = false
    }

    /// Writes an item with the rules of ``VaultCollection/put(_:_:over:)``. An error is in ``error``.
    ///
    /// ```swift
    /// Button("Save") { Task { await notes.put(Note(text: typed), entry.id, over: entry.version) } }
    /// ```
    /// - Parameter seen: The version that the user has changed (``CollectionEntry/version``). If another version has
    ///   arrived since, both are kept.
    /// - Returns: The id under which the item was written; nil after an error.
    @discardableResult
    public func put(_ value: Value, _ id: ItemID = .random(), over seen: ItemVersion? = nil) async -> ItemID? {
        do throws(VaultError) {
            return try await collection.put(value, id, over: seen)
        } catch {
            self.error = error
            return nil
        }
    }

    /// Changes an item with the rules of ``VaultCollection/edit(_:_:)``. An error is in ``error``.
    ///
    /// ```swift
    /// Button("Pin") { Task { await notes.edit(entry.id) { $0.isPinned = true } } }
    /// ```
    /// - Returns: The value that is stored now; nil after an error.
    @discardableResult
    public func edit(_ id: ItemID, _ change: (inout Value) throws(VaultError) -> Void) async -> Value? {
        do throws(VaultError) {
            return try await collection.edit(id, change)
        } catch {
            self.error = error
            return nil
        }
    }

    /// Deletes an item with the rules of ``VaultCollection/delete(_:)``. An error is in ``error``.
    ///
    /// ```swift
    /// .onDelete { rows in Task { for row in rows { await notes.delete(notes.entries[row].id) } } }
    /// ```
    public func delete(_ id: ItemID) async {
        do throws(VaultError) { try await collection.delete(id) } catch { self.error = error }
    }
}
