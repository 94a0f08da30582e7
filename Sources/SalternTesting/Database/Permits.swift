/// Lets so many tests at a time have something of which there is not enough for all.
actor Permits {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Whether the current task has a permit already: it needs no second one.
    @TaskLocal private static var isHeld = false

    init(_ count: Int) { free = count }

    /// Runs `body` with a permit.
    nonisolated func with<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        if Self.isHeld { return try await body() }
        await take()
        do {
            let result = try await Self.$isHeld.withValue(true) { try await body() }
            await give()
            return result
        } catch {
            await give()
            throw error
        }
    }

    private func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func give() {
        if waiting.isEmpty {
            free += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}
