internal import HTTPCore

/// What must be true of an item for a change to happen (RFC 9110 §13.1.1, §13.1.2).
enum Precondition: Sendable, Equatable {
    /// `If-None-Match: *`: there is no such item.
    case absent
    /// `If-Match: *`: there is one.
    case present
    /// `If-Match: "7"`: there is one, and this is its revision.
    case revision(Int64)
    /// `If-Match` with tags that no revision has, or with weak ones: nothing fulfils it.
    case unmatched

    /// The form that statements take: 0 for absent, -1 for present, or the revision. No revision reaches the highest number.
    var parameter: Int64 {
        switch self {
        case .absent: 0
        case .present: -1
        case .revision(let revision): revision
        case .unmatched: .max
        }
    }
}

/// The preconditions of a request that changes something, of which one is tried at a time.
///
/// A statement compares one revision. When it fails because the present revision is another one of the list, the change is
/// tried again with that one: each attempt is atomic by itself.
struct Preconditions: Sendable {
    /// What to try next.
    private(set) var current: Precondition
    private var others: [Int64]

    /// Reads the fields of a request.
    ///
    /// - Parameter allowsAbsent: Whether the request can create something.
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

    /// Moves to the precondition that names what is there, after ``current`` has failed.
    ///
    /// - Parameter revision: What is there; nil for nothing.
    /// - Returns: Whether there is such a precondition, which has not been tried.
    mutating func move(to revision: Int64?) -> Bool {
        guard let revision, let index = others.firstIndex(of: revision) else { return false }
        others.remove(at: index)
        current = .revision(revision)
        return true
    }
}

/// Why there is no usable precondition.
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
