using System;
using System.Threading.Tasks;

// The generated client can use policies of the library Polly, which Debian lacks. The life sets none.
namespace Polly
{
    public enum OutcomeType { Successful, Failure }

    public sealed class PolicyResult<T>
    {
        public OutcomeType Outcome { get; set; }
        public T Result { get; set; }
        public Exception FinalException { get; set; }
    }

    public interface ISyncPolicy<T> { }

    public interface IAsyncPolicy<T>
    {
        Task<PolicyResult<T>> ExecuteAndCaptureAsync(Func<Task<T>> action);
    }
}
