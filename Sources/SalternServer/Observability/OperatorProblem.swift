internal import HTTPCore

/// A problem for the operator to correct. The reply omits the reason, which is written to the log.
protocol OperatorProblem: ProblemConvertible {
    /// Writes the reason as an error.
    func write(to log: Log, requestID: RequestID)
}
