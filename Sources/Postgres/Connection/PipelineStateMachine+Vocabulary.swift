/// What the machine is told, and what it says.
extension PipelineStateMachine {
    /// An answer of the server.
    enum Answer {
        case success
        case failure(Failure)
        case aborted, sync
    }

    /// What an error says about prepared statements.
    enum Failure {
        /// Nothing.
        case ordinary
        /// Nothing; a lock could not be had in time (55P03, 40P01, 40001).
        case lock
        /// The server has no statement of that name (26000).
        case unknownStatement
        /// The statement was prepared before the schema changed, and its result would be another (0A000).
        case stalePlan
        /// Somebody else has prepared a statement of that name (42P05).
        case duplicateStatement
    }

    /// What the connection does with an answer.
    enum Action {
        /// Nothing to do.
        case none
        /// A preparation succeeded.
        case prepared(statement: Int)
        /// The result belongs to this request.
        case keep(Request)
        /// The error belongs to this request, and to this statement of the catalogue unless the sync itself failed.
        case fail(Request, statement: Int?)
        /// The error of a preparation belongs to this request, and to those sent for the same preparation.
        case failPreparation(Request, statement: Int)
        /// The request was sent for a preparation that had failed: its error is this request's too.
        case failLikePreparation(Request, statement: Int)
        /// A batch has ended: ask ``nextVerdict()`` until it is `nil`.
        case settle
        /// The server answered what was not asked: the connection is of no use any more.
        case violation
    }

    /// How a request ended.
    enum Verdict {
        /// Every statement succeeded, and the batch is committed.
        case succeeded
        /// A statement of the request failed, and the error was told before.
        case failed
        /// Nothing of it took effect because a neighbour failed, or because it was never complete: send it again, alone.
        case again
        /// The connection ended while it was under way.
        case lost
    }
}

extension PipelineStateMachine.Failure {
    /// What a code means for the pipeline.
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
