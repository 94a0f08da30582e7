/// A condition that did not hold in time.
public struct ConditionNeverHeld: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) { self.description = description }
}

/// Waits until `condition` holds, for conditions that no event announces.
///
/// The limit ends tests that hang. It is far above the time that a busy machine needs, so that it decides nothing else.
/// - Parameters:
///   - limit: The maximum time to wait.
///   - interval: The pause between two checks.
/// - Throws: ``ConditionNeverHeld`` with the place of the call after `limit`, and each error of `condition`.
public func eventually(
    within limit: Duration = .seconds(600), every interval: Duration = .milliseconds(5),
    file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < end else {
            throw ConditionNeverHeld(description: "\(file):\(line): the condition did not hold within \(limit)")
        }
        try await Task.sleep(for: interval)
    }
}
