/// Inputs and outputs of the state machine.
extension PipelineStateMachine {
    /// A reply of the server.
    enum Answer {
        case success
        case failure(Failure)
        case aborted, sync
    }

    /// An error, classified by its effect on prepared statements and groups.
    enum Failure {
        /// No effect.
        case ordinary
        /// No effect on preparations; a lock was not available in time (55P03, 40P01, 40001).
        case lock
        /// The server has no statement of that name (26000).
        case unknownStatement
        /// The schema changed after the preparation, and the result would have other columns (0A000).
        case stalePlan
        /// Another client of the session has prepared a statement of that name (42P05).
        case duplicateStatement
    }

    /// The connection's next step after a reply.
    enum Action {
        /// Nothing to do.
        case none
        case prepared(statement: Int)
        /// The result belongs to this request.
        case keep(Request)
        /// The error belongs to this request. `statement` is its number in the catalogue; nil if the sync itself
        /// failed.
        case fail(Request, statement: Int?)
        /// A preparation failed. The error belongs to this request and to others sent for the same preparation.
        case failPreparation(Request, statement: Int)
        /// The request was sent for a preparation that had failed, and gets the same error.
        case failLikePreparation(Request, statement: Int)
        /// A batch has ended. Call ``nextVerdict()`` until it returns `nil`.
        case settle
        /// The server sent an unexpected reply. The connection is unusable.
        case violation
    }

    /// The outcome of a request.
    enum Verdict {
        /// Every statement succeeded, and the batch is committed.
        case succeeded
        /// A statement of the request failed. An earlier action carried the error.
        case failed
        /// Nothing took effect, because a neighbour failed or the request was incomplete. Send it again, alone.
        case again
        /// The connection ended during the request.
        case lost
    }
}

extension PipelineStateMachine.Failure {
    /// Classifies a code.
    init(_ state: SQLState) {
        switch state {
        case .invalidStatementName: self = .unknownStatement
        case .featureNotSupported: self = .stalePlan
        case .duplicatePreparedStatement: self = .duplicateStatement
        case .lockNotAvailable, .deadlockDetected, .serializationFailure: self = .lock
        default: self = .ordinary
        }
    }
}
