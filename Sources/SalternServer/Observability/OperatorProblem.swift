internal import HTTPCore

/// A problem that the operator has to mend. Beside the reply, which does not say why, it leaves a line in the log.
protocol OperatorProblem: ProblemConvertible {
    /// Writes the line, an error.
    func write(to log: Log, requestID: RequestID)
}
