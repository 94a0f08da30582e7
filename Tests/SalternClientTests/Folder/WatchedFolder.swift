import Testing

@testable import SalternClient

/// Folders that are watched while a test goes on.
enum WatchedFolder {
    /// Watches a folder while `body` runs, and ends that afterwards, whatever became of `body`.
    ///
    /// The stream of reports ends when the watching ends, so a test that waits for a report does not outlast an error of it.
    /// - Parameter watch: Watches, and passes on each report.
    /// - Throws: The error with which the watching has ended by itself, else that of `body`.
    static func run(
        _ watch: @escaping @Sendable (@escaping @Sendable (FolderReport) -> Void) async throws -> Void,
        _ body: (AsyncStream<FolderReport>) async throws -> Void
    ) async throws {
        let (reports, continuation) = AsyncStream.makeStream(of: FolderReport.self)
        let watching = Task {
            defer { continuation.finish() }
            try await watch { continuation.yield($0) }
        }
        var failure: (any Error)?
        do { try await body(reports) } catch { failure = error }
        watching.cancel()
        do {
            try await watching.value
        } catch  where !isCancellation(error) {
            throw error
        } catch {}
        if let failure { throw failure }
    }

    /// Returns the first report that `isAwaited` accepts.
    /// - Throws: When the watching ends before.
    static func first(
        _ reports: AsyncStream<FolderReport>, _ isAwaited: (FolderReport) async throws -> Bool
    ) async throws -> FolderReport {
        for await report in reports {
            if try await isAwaited(report) { return report }
        }
        throw WatchingHasEnded()
    }

    private static func isCancellation(_ error: any Error) -> Bool {
        if case FolderError.cancelled = error { true } else { error is CancellationError }
    }
}

/// A folder is not watched any more, and the awaited report has not come.
struct WatchingHasEnded: Error {}
