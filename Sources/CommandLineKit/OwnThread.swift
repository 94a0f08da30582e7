import Foundation

/// Runs what blocks on a thread of its own: those of the cooperative pool are as many as there are cores, and all tasks of the
/// process need them.
package func onOwnThread<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
