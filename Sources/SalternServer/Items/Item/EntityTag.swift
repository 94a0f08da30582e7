internal import HTTPCore

/// A revision as an entity tag: `"7"`.
enum EntityTag {
    static func text(of revision: Int64) -> String { "\"\(revision)\"" }
}

extension EntityTagList.Tag {
    /// The revision of the tag, weak or not. Nil for a tag that no reply contains.
    var revision: Int64? {
        guard let revision: Int64 = ASCII.wholeNumber(opaque), revision > 0 else { return nil }
        return revision
    }
}

extension EntityTagList {
    /// Returns true if a tag matches the revision by strong comparison (RFC 9110 §8.8.3.2), which excludes weak tags.
    func matchesStrongly(_ revision: Int64) -> Bool {
        isAny || tags.contains { !$0.isWeak && $0.revision == revision }
    }

    /// Returns true if a tag matches the revision by weak comparison.
    func matchesWeakly(_ revision: Int64) -> Bool { isAny || tags.contains { $0.revision == revision } }

    /// The revisions of the strong tags, in order and without repetitions.
    var strongRevisions: [Int64] {
        var revisions: [Int64] = []
        for tag in tags where !tag.isWeak {
            if let revision = tag.revision, !revisions.contains(revision) { revisions.append(revision) }
        }
        return revisions
    }
}

/// The result of a read's preconditions, in the order of RFC 9110 §13.2.2.
enum ReadCondition {
    case met
    /// `If-Match` has only other tags: the read is rejected.
    case failed
    /// `If-None-Match` has the tag: the client has this content.
    case notModified

    /// Evaluates the fields of a request. A malformed field matches no tag; it is not rejected, because a read changes
    /// nothing.
    ///
    /// - Parameter revision: The present revision. A missing item returns 404 for any preconditions (§13.2.1).
    init(_ fields: RequestFields, revision: Int64) {
        let wanted = try? EntityTagList.read("if-match", in: fields)
        let known = try? EntityTagList.read("if-none-match", in: fields)
        if fields.contains("if-match"), !(wanted?.matchesStrongly(revision) ?? false) {
            self = .failed
        } else if let known, known.matchesWeakly(revision) {
            self = .notModified
        } else {
            self = .met
        }
    }
}
