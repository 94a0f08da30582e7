import Foundation
import Observation
import SalternClient

/// The whole app but its screens: one account's notes on this device.
@MainActor @Observable
public final class NotesModel {
    /// Which screen a person sees.
    public enum Stage: Sendable {
        /// The app has just been started.
        case starting
        /// Nobody is logged in on this device.
        case signedOut
        /// The notes are here, and the password opens them.
        case locked
        /// The notes can be read and written, with and without network.
        case open
    }

    /// A line of the list.
    public struct Entry: Identifiable, Sendable {
        public let id: ItemID
        public let note: Note
        /// For a copy that holds this device's version of another note: the notice that says so.
        public let conflict: Notice?
    }

    /// Which screen a person sees.
    public private(set) var stage = Stage.starting
    /// The notes, those that were changed last first.
    public private(set) var entries: [Entry] = []
    /// How many notes cannot be read, such as those of a later version of the app. They are kept and synced as they are.
    public private(set) var unreadableCount = 0
    /// How many notes were deleted elsewhere at once, and wait for ``agreeToDeletions()``.
    public private(set) var heldDeletionCount = 0
    /// How often the notes were opened, also after another log-in: ``follow()`` begins again with each.
    public private(set) var openingCount = 0
    /// How the device and the server stand to each other.
    public private(set) var sync = SyncState.locked
    /// What went wrong last, as a sentence for the person.
    public private(set) var problem: String?
    /// Whether there is a problem; a screen sets it to false when the person has read the sentence.
    public var hasProblem: Bool {
        get { problem != nil }
        set { if !newValue { problem = nil } }
    }

    let settings: VaultSettings
    private var openVault: Vault?

    /// Creates the model of an app that has not been started yet: see ``start()``.
    public init(_ settings: VaultSettings) {
        var settings = settings
        settings.merge("notes", schema: Note.schema, Note.merge)
        self.settings = settings
    }

    /// Opens the notes of the last launch, without password and without network.
    public func start() async throws {
        guard let vault = try await Vault.resume(settings) else { return close(.signedOut) }
        try await use(vault)
    }

    /// Shows the notes of a vault, unless it is locked.
    func use(_ vault: Vault) async throws {
        openVault = vault
        if await vault.isLocked { return close(.locked) }
        stage = .open
        openingCount += 1
        try await refresh()
    }

    /// Shows no notes any more.
    func close(_ stage: Stage) {
        self.stage = stage
        entries = []
        if stage == .signedOut { openVault = nil }
    }

    var vault: Vault {
        get throws {
            guard let openVault else { throw NotLoggedIn() }
            return openVault
        }
    }

    var notes: VaultCollection<Note> { get throws { try vault.collection("notes", schema: Note.schema) } }

    // MARK: What the screens follow

    /// Keeps the list current, and the device in step with the server, until the task is cancelled or a person has to log in
    /// again.
    public func follow() async {
        async let list: Void = followList()
        async let states: Void = followStates()
        await attempt { try await self.vault.keepInSync() }
        _ = await (list, states)
    }

    private func followList() async {
        guard let contents = try? notes.observe() else { return }
        for await contents in contents { await attempt { try await self.show(contents) } }
    }

    private func followStates() async {
        guard let states = try? await vault.states() else { return }
        for await state in states { sync = state }
    }

    /// Reads the list again.
    public func refresh() async throws { try await show(notes.contents()) }

    private func show(_ contents: CollectionContents<Note>) async throws {
        let conflicts = try await vault.notices().filter { $0.kind == .conflict }
        heldDeletionCount = try await vault.heldDeletions().count
        unreadableCount = contents.unreadable.count
        entries = contents.items
            .map { id, note in Entry(id: id, note: note, conflict: conflicts.first { $0.other == id }) }
            .sorted { ($1.note.changed, $0.id) < ($0.note.changed, $1.id) }
    }

    /// Does what a person has asked for, and shows what went wrong.
    public func perform(_ work: @escaping @MainActor () async throws -> Void) { Task { await attempt(work) } }

    private func attempt(_ work: @MainActor () async throws -> Void) async {
        do { try await work() } catch { if !Task.isCancelled { problem = error.localizedDescription } }
    }
}

/// A command that needs an account, on a device where nobody is logged in.
public struct NotLoggedIn: LocalizedError {
    public var errorDescription: String? { "Nobody is logged in on this device." }
}
