internal import HTTPCore

/// The condition on an item for a change (RFC 9110 §13.1.1, §13.1.2).
enum Precondition: Sendable, Equatable {
    /// `If-None-Match: *`: the item does not exist.
    case absent
    /// `If-Match: *`: the item exists.
    case present
    /// `If-Match: "7"`: the item exists with this revision.
    case revision(Int64)
    /// `If-Match` with weak tags or tags of no revision. It always fails.
    case unmatched

    /// The value in statements: 0 for absent, -1 for present, or the revision. Revisions never reach the highest
    /// number.
    var parameter: Int64 {
        switch self {
        case .absent: 0
        case .present: -1
        case .revision(let revision): revision
        case .unmatched: .max
        }
    }
}

/// The preconditions of a change, tried one at a time.
///
/// A statement compares one revision. If the present one is another entry of the list, the change is tried again with
/// that. Each attempt is atomic.
struct Preconditions: Sendable {
    /// The precondition to try next.
    private(set) var current: Precondition
    private var others: [Int64]

    /// Reads the fields of a request.
    ///
    /// - Parameter allowsAbsent: True if the request can create an item.
    /// - Throws: ``PreconditionRefusal``, or 400 `malformed_precondition`.
    init(_ fields: RequestFields, allowsAbsent: Bool) throws {
        let wanted = try EntityTagList.read("if-match", in: fields)
        let unwanted = try EntityTagList.read("if-none-match", in: fields)
        switch (wanted, unwanted) {
        case (nil, nil): throw PreconditionRefusal.required
        case (.some, .some): throw PreconditionRefusal.unusable
        case (let wanted?, nil):
            let revisions = wanted.isAny ? [] : wanted.strongRevisions
            current = wanted.isAny ? .present : revisions.first.map { .revision($0) } ?? .unmatched
            others = Array(revisions.dropFirst())
        case (nil, let unwanted?):
            guard unwanted.isAny, allowsAbsent else { throw PreconditionRefusal.unusable }
            current = .absent
            others = []
        }
    }

    /// Moves to the precondition of the present revision after ``current`` has failed.
    ///
    /// - Parameter revision: The present revision. Nil if there is none.
    /// - Returns: True if there is such an untried precondition.
    mutating func move(to revision: Int64?) -> Bool {
        guard let revision, let index = others.firstIndex(of: revision) else { return false }
        others.remove(at: index)
        current = .revision(revision)
        return true
    }
}

/// Reasons to reject the preconditions of a request.
enum PreconditionRefusal: ProblemConvertible, Equatable {
    case required
    case unusable

    var problem: Problem {
        switch self {
        case .required:
            Problem(
                .preconditionRequired, "precondition_required",
                detail:
                    "Send If-None-Match: * to create, If-Match: \"REVISION\" to change what was read, or If-Match: *.")
        case .unusable:
            Problem(
                .badRequest, "malformed_precondition",
                detail: "Send exactly one of If-None-Match: *, If-Match: \"REVISION\" and If-Match: *.")
        }
    }
}

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
    fileprivate func matchesStrongly(_ revision: Int64) -> Bool {
        isAny || tags.contains { !$0.isWeak && $0.revision == revision }
    }

    /// Returns true if a tag matches the revision by weak comparison.
    fileprivate func matchesWeakly(_ revision: Int64) -> Bool { isAny || tags.contains { $0.revision == revision } }

    /// The revisions of the strong tags, in order and without repetitions.
    fileprivate var strongRevisions: [Int64] {
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
