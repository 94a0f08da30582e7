internal import CCurl
internal import Cryptography
internal import Foundation
public import SalternServer
internal import Synchronization

/// Posts webhooks by libcurl. All share one thread and one `CURLM *`, so a slow receiver does not block the others.
///
/// Accepts only https with verified certificates. Uses no proxy and follows no redirect.
///
/// `@unchecked Sendable` is safe: only the thread uses the multi handle and `running`. The exception is
/// `curl_multi_wakeup`, which libcurl permits on any thread while the handle exists. The thread frees the handle after
/// the last command, `stop`.
public final class CurlWebhookClient: WebhookClient, @unchecked Sendable {
    private enum Command {
        case start(WebhookTransfer), cancel(WebhookTransfer)
    }

    private struct Inbox {
        var commands: [Command] = []
        var isStopped = false
    }

    private let multi: UnsafeMutableRawPointer
    private let authorities: [UInt8]?
    private let inbox = Mutex(Inbox())
    private var running: [UnsafeMutableRawPointer: WebhookTransfer] = [:]

    /// Initialises libcurl's process-wide state once.
    private static let isUsable: Bool = {
        OpenSSLLibrary.setUp()
        return saltern_curl_set_up() == CURLE_OK
    }()

    /// Starts the thread. ``stop()`` ends it.
    /// - Parameter authorities: Certificates in PEM that replace the system's authorities. Nil uses the system's.
    /// - Returns: Nil if libcurl cannot be initialised.
    public init?(authorities: [UInt8]? = nil) {
        guard Self.isUsable, let multi = curl_multi_init() else { return nil }
        self.multi = multi
        self.authorities = authorities
        // Keeps this number of idle connections open.
        _ = saltern_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 32)
        let thread = Thread { self.work() }
        thread.name = "webhooks"
        thread.start()
    }

    public func post(_ request: WebhookRequest) async -> WebhookOutcome {
        guard let transfer = WebhookTransfer(request, authorities: authorities) else { return .failed(.unacceptable) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.wait(with: continuation)
                if !send(.start(transfer)) { transfer.end(.failed(.cancelled)) }
            }
        } onCancel: {
            if !send(.cancel(transfer)) { transfer.end(.failed(.cancelled)) }
        }
    }

    /// Ends the thread and all transfers.
    public func stop() {
        inbox.withLock { inbox in
            if inbox.isStopped { return }
            inbox.isStopped = true
            curl_multi_wakeup(multi)
        }
    }

    private func send(_ command: Command) -> Bool {
        inbox.withLock { inbox in
            if inbox.isStopped { return false }
            inbox.commands.append(command)
            // The call is inside the lock, because the thread frees the handle only after it has read `isStopped`.
            curl_multi_wakeup(multi)
            return true
        }
    }

    // MARK: On the thread

    private func work() {
        while true {
            let taken = inbox.withLock { inbox in
                let taken = inbox
                inbox.commands = []
                return taken
            }
            for command in taken.commands {
                switch command {
                case .start(let transfer): start(transfer)
                case .cancel(let transfer): finish(transfer, .failed(.cancelled))
                }
            }
            if taken.isStopped { break }
            var active: Int32 = 0
            curl_multi_perform(multi, &active)
            takeFinished()
            curl_multi_poll(multi, nil, 0, 1_000, nil)
        }
        for transfer in Array(running.values) { finish(transfer, .failed(.cancelled)) }
        curl_multi_cleanup(multi)
    }

    private func start(_ transfer: WebhookTransfer) {
        // A transfer can be cancelled before it starts.
        if transfer.hasEnded { return }
        guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
            return transfer.end(.failed(.cancelled))
        }
        running[transfer.handle] = transfer
    }

    private func takeFinished() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
                let transfer = running[handle]
            else { continue }
            finish(transfer, transfer.outcome(of: saltern_curl_message_result(message)))
        }
    }

    private func finish(_ transfer: WebhookTransfer, _ outcome: WebhookOutcome) {
        if running.removeValue(forKey: transfer.handle) != nil { curl_multi_remove_handle(multi, transfer.handle) }
        transfer.end(outcome)
    }
}
