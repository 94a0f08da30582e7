/// An object that collects work during an iteration of a loop and does it once at the end.
public protocol IterationObserver: AnyObject {
    /// True when the observer is registered for the end of this iteration. The loop sets it; its initial value is
    /// `false`.
    var isIterationEndRequested: Bool { get set }

    /// Runs on the loop's thread after the iteration's handlers and jobs.
    func iterationEnded()
}
