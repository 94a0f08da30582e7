internal import CCurl
internal import Cryptography
internal import Foundation
internal import Synchronization

/// One thread with one `CURLM *`, on which all transfers of a transport run.
///
/// `@unchecked Sendable` is safe. Only the thread uses the multi handle and `running`, except for `curl_multi_wakeup`.
/// libcurl allows that call from any thread as long as the handle exists. The thread frees the handle after `.stop`,
/// which is always the last command.
final class CurlLoop: @unchecked Sendable {
    private enum Command {
        case start(CurlTransfer), cancel(CurlTransfer), resume(CurlTransfer), stop
    }

    private struct Inbox {
        var commands: [Command] = []
        var isStopped = false
    }

    private let multi: UnsafeMutableRawPointer
    private let inbox = Mutex(Inbox())
    private var running: [ObjectIdentifier: CurlTransfer] = [:]
    /// Only used on the thread.
    let pace: TransferPace?

    /// libcurl's process-wide state, set up once.
    private static let isUsable: Bool = {
        OpenSSLLibrary.setUp()
        return saltern_curl_set_up() == CURLE_OK
    }()

    /// Starts the thread.
    /// - Parameter pace: The pace of all transfers; nil for none.
    /// - Returns: nil when libcurl cannot be set up.
    init?(_ pace: TransferPace?) {
        guard Self.isUsable, let multi = curl_multi_init() else { return nil }
        self.multi = multi
        self.pace = pace
        // A client has one server; more connections would only cost more handshakes.
        _ = saltern_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 8)
        let thread = Thread { self.work() }
        thread.name = "saltern-client"
        thread.start()
    }

    /// Runs a transfer until its reply has arrived: the whole reply, or for a stream its head.
    func run(_ transfer: CurlTransfer) async throws(TransportError) {
        let outcome: Result<Void, TransportError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.wait(with: continuation)
                if !post(.start(transfer)) { transfer.end(.failure(.cancelled)) }
            }
        } onCancel: {
            cancel(transfer)
        }
        try outcome.get()
    }

    /// Ends a running transfer. One that has ended is not changed.
    func cancel(_ transfer: CurlTransfer) { _ = post(.cancel(transfer)) }

    /// Continues a paused transfer.
    func resume(_ transfer: CurlTransfer) { _ = post(.resume(transfer)) }

    /// Cancels every transfer and ends the thread.
    func stop() { _ = post(.stop) }

    private func post(_ command: Command) -> Bool {
        inbox.withLock { inbox in
            if inbox.isStopped { return false }
            if case .stop = command { inbox.isStopped = true }
            inbox.commands.append(command)
            // Within the lock: the thread frees the handle only after it has removed `.stop` from the inbox.
            curl_multi_wakeup(multi)
            return true
        }
    }

    // MARK: On the thread

    private func work() {
        // Some versions of libcurl write to closed connections without MSG_NOSIGNAL, which would end the process.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var isStopped = false
        while !isStopped {
            let commands = inbox.withLock { inbox in
                let commands = inbox.commands
                inbox.commands = []
                return commands
            }
            for command in commands {
                switch command {
                case .start(let transfer): start(transfer)
                case .cancel(let transfer): finish(transfer, .failure(.cancelled))
                case .resume(let transfer): if isRunning(transfer) { goOn(transfer) }
                case .stop: isStopped = true
                }
            }
            if isStopped { break }
            for transfer in pace?.takeReady() ?? [] { goOn(transfer) }
            var active: Int32 = 0
            curl_multi_perform(multi, &active)
            takeFinished()
            for transfer in running.values.filter(\.isTooSlow) { finish(transfer, .failure(.timedOut)) }
            curl_multi_poll(multi, nil, 0, patience, nil)
        }
        for transfer in Array(running.values) + (pace?.everyWaiting ?? []) { finish(transfer, .failure(.cancelled)) }
        curl_multi_cleanup(multi)
    }

    /// The longest wait of the thread without events, in milliseconds.
    private var patience: Int32 {
        guard let delay = pace?.delay, delay < .seconds(1) else { return 1_000 }
        // Rounded up: an earlier check would find the transfer still waiting.
        return Int32(delay / .milliseconds(1)) + 1
    }

    private func goOn(_ transfer: CurlTransfer) {
        if isRunning(transfer) { curl_easy_pause(transfer.handle, CURLPAUSE_CONT) } else { start(transfer) }
    }

    private func isRunning(_ transfer: CurlTransfer) -> Bool { running[ObjectIdentifier(transfer)] != nil }

    private func start(_ transfer: CurlTransfer) {
        guard !transfer.hasEnded, transfer.mayStart else { return }
        running[ObjectIdentifier(transfer)] = transfer
        transfer.noteStart()
        if curl_multi_add_handle(multi, transfer.handle) != CURLM_OK {
            finish(transfer, .failure(.configuration(.system)))
        }
    }

    private func takeFinished() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
                let transfer = running.values.first(where: { $0.handle == handle })
            else { continue }
            finish(transfer, transfer.outcome(of: saltern_curl_message_result(message)))
        }
    }

    private func finish(_ transfer: CurlTransfer, _ outcome: Result<Void, TransportError>) {
        if running.removeValue(forKey: ObjectIdentifier(transfer)) != nil {
            curl_multi_remove_handle(multi, transfer.handle)
        }
        pace?.forget(transfer)
        transfer.end(outcome)
    }
}
