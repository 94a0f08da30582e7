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
        /// No account is logged in on this device.
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

    /// The account on this device; nil before a log-in.
    public private(set) var account: VaultModel?
    private var list: CollectionModel<Note>?
    private var hasStarted = false
    /// The last error, as a sentence.
    public private(set) var problem: String?
    /// True while there is a problem. A screen sets it to false when its alert is closed.
    public var hasProblem: Bool {
        get { problem != nil }
        set { if !newValue { problem = nil } }
    }

    let settings: VaultSettings

    /// Creates the model of an app that has not been started yet: see ``start()``.
    public init(_ settings: VaultSettings) {
        var settings = settings
        settings.merge("notes", schema: Note.schema, Note.merge)
        self.settings = settings
    }

    /// Opens the notes of the last launch, without password and without network.
    public func start() async throws {
        let vault = try await Vault.resume(settings)
        if let vault { await use(vault) }
        hasStarted = true
    }

    /// Shows the notes of a vault.
    func use(_ vault: Vault) async {
        list = CollectionModel(
            vault.collection("notes", schema: Note.schema), sorted: .by(\.changed, descending: true))
        account = await VaultModel(vault)
    }

    var vault: Vault {
        get throws {
            guard let account, !account.isSignedOut else { throw NotLoggedIn() }
            return account.vault
        }
    }

    var notes: VaultCollection<Note> { get throws { try vault.collection("notes", schema: Note.schema) } }

    // MARK: What the screens show

    /// Which screen a person sees.
    public var stage: Stage {
        guard let account, !account.isSignedOut else { return hasStarted ? .signedOut : .starting }
        return account.isLocked ? .locked : .open
    }

    /// The notes, those that were changed last first.
    public var entries: [Entry] {
        let conflicts = account?.notices.filter { $0.kind == .conflict } ?? []
        return list?.entries.map { entry in
            Entry(id: entry.id, note: entry.value, conflict: conflicts.first { $0.other == entry.id })
        } ?? []
    }

    /// How many notes cannot be read, such as those of a later version of the app. They are kept and synced as they are.
    public var unreadableCount: Int { list?.contents.unreadable.count ?? 0 }

    /// True while many deletions from elsewhere wait for ``agreeToDeletions()``.
    public var areDeletionsHeld: Bool { account?.notices.contains { $0.kind == .massDeletion } ?? false }

    /// Another one after a sign-out and a log-in: following the server begins again then.
    public var opening: ObjectIdentifier? { account.map { ObjectIdentifier($0) } }

    /// True when the list was read, or cannot be read before a log-in or the password.
    public var isLoaded: Bool { stage != .open || list?.isLoaded ?? true }

    /// Does what a person has asked for, and shows what went wrong.
    public func perform(_ work: @escaping @MainActor () async throws -> Void) {
        Task {
            do { try await work() } catch { if !Task.isCancelled { problem = error.localizedDescription } }
        }
    }
}

/// A command that needs an account, on a device without one.
public struct NotLoggedIn: LocalizedError {
    public var errorDescription: String? { "No account is logged in on this device." }
}
