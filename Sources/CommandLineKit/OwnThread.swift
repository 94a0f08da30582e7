import Foundation

/// Runs blocking work on a separate thread.
///
/// The cooperative pool has one thread for each core, and all tasks of the process need them.
package func onOwnThread<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
