internal import HTTPCore

/// What must be true of an item for a change to happen (RFC 9110 §13.1.1, §13.1.2).
enum Precondition: Sendable, Equatable {
    /// `If-None-Match: *`: there is no such item.
    case absent
    /// `If-Match: *`: there is one.
    case present
    /// `If-Match: "7"`: there is one, and this is its revision.
    case revision(Int64)

    /// Reads the fields of a request that changes an item. Lists and weak tags are refused: an item has one strong
    /// tag at a time.
    init(_ fields: RequestFields, allowsAbsent: Bool) throws(Refusal) {
        switch (fields["if-match"], fields["if-none-match"]) {
        case (nil, nil): throw .required
        case (.some, .some): throw .malformed
        case ("*", nil): self = .present
        case (let tag?, nil):
            guard let revision = EntityTag.revision(tag) else { throw .malformed }
            self = .revision(revision)
        case (nil, let tag?):
            guard tag == "*", allowsAbsent else { throw .malformed }
            self = .absent
        }
    }

    /// The form that statements take: 0 for absent, -1 for present, or the revision.
    var parameter: Int64 {
        switch self {
        case .absent: 0
        case .present: -1
        case .revision(let revision): revision
        }
    }

    /// Why there is no usable precondition.
    enum Refusal: Error, Equatable {
        case required
        case malformed
    }
}

extension Precondition.Refusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .required:
            Problem(
                .preconditionRequired, "precondition_required",
                detail:
                    "Say If-None-Match: * to create, If-Match: \"REVISION\" to change what was read, or If-Match: *.")
        case .malformed:
            Problem(
                .badRequest, "malformed_precondition",
                detail: "The precondition is one of If-None-Match: *, If-Match: \"REVISION\" and If-Match: *.")
        }
    }
}
