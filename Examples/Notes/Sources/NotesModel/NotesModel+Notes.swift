import Foundation
import SalternClient

extension NotesModel {
    /// A note that a person writes or changes.
    public struct Draft: Identifiable, Sendable {
        public let id: ItemID
        public var note: Note
        /// The note as the screen showed it before.
        let version: ItemVersion?
    }

    /// Returns a note to change; a new one without an id.
    public func draft(_ id: ItemID? = nil) async throws -> Draft {
        guard let id else { return Draft(id: .random(), note: Note(), version: nil) }
        guard let entry = try await notes.entry(id) else { throw VaultError.notFound }
        return Draft(id: id, note: entry.value, version: entry.version)
    }

    /// Writes a note. It is on the disk when this returns, and is sent when there is a network. When another version has come
    /// since the draft was made, both are kept.
    public func save(_ draft: Draft) async throws {
        var note = draft.note
        note.changed = .now
        try await notes.put(note, draft.id, over: draft.version)
    }

    /// Deletes a note. It stays in the trash of this device for 30 days.
    public func delete(_ id: ItemID) async throws {
        try await notes.delete(id)
    }

    // MARK: Attachments

    /// Returns a file as an attachment for a draft. Without network its content waits on this device, as edits do.
    public func attachment(of file: URL) async throws -> Attachment {
        try await vault.attach(file: file, properties: ["name": file.lastPathComponent])
    }

    /// Writes the content of an attachment to a file, from this device when it is here.
    public func save(_ attachment: Attachment, to file: URL) async throws { try await vault.save(attachment, to: file) }

    // MARK: Sharing

    /// Returns a link that opens a note's text in any browser, three times within a week.
    /// - Parameter server: The server's address, as others reach it.
    public func share(_ id: ItemID, server: URL) async throws -> URL {
        guard let note = try await notes[id] else { throw VaultError.notFound }
        return try await vault.share(text: note.text, base: server, expiresAt: .now + 7 * 86_400, maxViews: 3).url
    }

    // MARK: Conflicts

    /// Which of two versions of a note stay.
    public enum Choice: String, Sendable {
        case mine, theirs, both
    }

    /// Settles a conflict as the person wants it.
    /// - Parameter copy: An entry with a ``Entry/conflict``.
    public func settle(_ copy: Entry, keeping choice: Choice) async throws {
        guard let notice = copy.conflict, let original = notice.item else { return }
        var edits = VaultEdits()
        if choice == .mine { edits.put(copy.note, original, in: try notes) }
        if choice != .both { edits.delete(copy.id) }
        try await vault.apply(edits)
        try await vault.forget(notice)
    }

    /// Agrees to the many deletions that another device has made.
    public func agreeToDeletions() async throws {
        try await vault.agreeToDeletions()
    }
}
