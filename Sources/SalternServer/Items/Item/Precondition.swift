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
