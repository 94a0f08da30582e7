internal import CLibEvent
internal import Glibc

/// A joinable thread with a name.
final class LoopThread: Sendable {
    private let id: pthread_t

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Starts a thread that runs `body`. Signals are blocked in it: the main thread handles them.
    init(name: String, body: @escaping @Sendable () -> Void) throws(EventLoopError) {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var id = pthread_t()
        let code = pthread_create(
            &id, nil,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_BLOCK, &all, nil)
                saltern_name_current_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw .system(operation: "pthread_create", code)
        }
        self.id = id
    }

    func join() { pthread_join(id, nil) }
}
