import Foundation
import SalternClient

/// A note, as this version of the app writes it.
public struct Note: Codable, Equatable, Sendable {
    /// The text; its first line is what a list shows.
    public var text: String
    /// The tags, in the order in which they were added.
    public var tags: [String]
    /// The files that belong to the note.
    public var attachments: [Attachment]
    /// When a person last changed the note.
    public var changed: Date

    /// Creates a note without attachments.
    public init(text: String = "", tags: [String] = [], changed: Date = .now) {
        self.text = text
        self.tags = tags
        attachments = []
        self.changed = changed
    }

    /// The first line of the text, for a list.
    public var headline: String { text.split(separator: "\n").first.map(String.init) ?? "New note" }
}

// MARK: Versions of the type

/// A note as the first version of the app wrote it.
struct FirstNote: Codable, Sendable {
    var body: String
}

extension Note {
    /// Reads notes of both versions, and writes those of the second.
    static let schema = ItemSchema<Note>(2, from: ItemSchema<FirstNote>()) { first in
        Note(text: first.body, changed: .distantPast)
    }
}

// MARK: Merging

extension Note {
    /// Merges two versions of a note that were made on two devices.
    /// - Returns: nil when both have changed the text: then the kit keeps both.
    @Sendable static func merge(base: Note?, mine: Note, theirs: Note) -> Note? {
        var merged = theirs
        if mine.text != theirs.text {
            guard let base, base.text == mine.text || base.text == theirs.text else { return nil }
            merged.text = base.text == mine.text ? theirs.text : mine.text
        }
        merged.tags = all(base?.tags ?? [], mine.tags, theirs.tags)
        merged.attachments = all(base?.attachments ?? [], mine.attachments, theirs.attachments)
        merged.changed = max(mine.changed, theirs.changed)
        return merged
    }

    /// Returns what both versions have, and what one has added.
    private static func all<Element: Equatable>(
        _ base: [Element], _ mine: [Element], _ theirs: [Element]
    ) -> [Element] {
        theirs.filter { mine.contains($0) || !base.contains($0) }
            + mine.filter { !theirs.contains($0) && !base.contains($0) }
    }
}
