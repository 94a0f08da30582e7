internal import HTTPCore

/// A revision as an entity tag: `"7"`.
enum EntityTag {
    static func text(of revision: Int64) -> String { "\"\(revision)\"" }
}

extension EntityTagList.Tag {
    /// The revision that the tag stands for, weak or not; nil for a tag that no reply has.
    var revision: Int64? {
        guard let revision: Int64 = ASCII.wholeNumber(opaque), revision > 0 else { return nil }
        return revision
    }
}

extension EntityTagList {
    /// Returns whether the revision is among the tags by strong comparison (RFC 9110 §8.8.3.2), which no weak tag passes.
    func matchesStrongly(_ revision: Int64) -> Bool {
        isAny || tags.contains { !$0.isWeak && $0.revision == revision }
    }

    /// Returns whether the revision is among the tags by weak comparison.
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

/// What the preconditions of a read come to, in the order of RFC 9110 §13.2.2.
enum ReadCondition {
    case met
    /// `If-Match` has other tags: the read is not carried out.
    case failed
    /// `If-None-Match` has the tag: the client has it already.
    case notModified

    /// Evaluates the fields of a request. A malformed field has no tag that matches: a read changes nothing, so there is
    /// nothing to protect by refusing it.
    ///
    /// - Parameter revision: Of what is there; what is not there is 404, whatever the preconditions are (§13.2.1).
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
