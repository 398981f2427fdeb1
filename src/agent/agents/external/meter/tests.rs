use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::agent::Limits;
use crate::model::{Reply, Role, ToolCall, Usage};

/// Everything that a meter needs.
struct MeterFixture {
    folder: TempDir,
    budget: Budget,
    trajectory: Trajectory,
    sampling: Sampling,
    stop: CancellationToken,
    cancel: CancellationToken,
    starved: watch::Sender<Duration>,
}

impl MeterFixture {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trajectory = Trajectory::create(&folder.path().join("t.jsonl")).unwrap();
        let (stop, cancel) = (CancellationToken::new(), CancellationToken::new());
        let (budget, sampling, starved) = (Budget::new(limits), Sampling::default(), watch::Sender::default());
        Self { folder, budget, trajectory, sampling, stop, cancel, starved }
    }

    fn meter<'a>(&'a mut self, model: &'a dyn Model) -> Meter<'a> {
        let (stop, cancel) = (self.stop.clone(), self.cancel.clone());
        let starved = self.starved.subscribe();
        Meter::new(model, &mut self.budget, &mut self.trajectory, &self.sampling, stop, cancel, starved)
    }

    fn events(&self) -> Vec<Event> {
        let lines = Trajectory::read(&self.folder.path().join("t.jsonl")).unwrap();
        lines.into_iter().map(|line| line.event).collect()
    }
}

/// A model that waits `after` seconds, then replies with `answer(number of the call)`. It stores the requests.
struct RespondingModel<F> {
    answer: F,
    after: u64,
    asked: Mutex<Vec<Request>>,
}

impl<F: Fn(u32) -> Result<Reply, ModelError>> RespondingModel<F> {
    fn new(after: u64, answer: F) -> Self {
        Self { answer, after, asked: Mutex::default() }
    }
}

#[async_trait]
impl<F: Fn(u32) -> Result<Reply, ModelError> + Send + Sync> Model for RespondingModel<F> {
    fn name(&self) -> &'static str {
        "says"
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        self.asked.lock().unwrap().push(request.clone());
        tokio::time::sleep(Duration::from_secs(self.after)).await;
        Ok((self.answer)(request.call)?)
    }
}

impl Meter<'_> {
    /// Answers a single call.
    async fn answer(&mut self, request: Request) -> Result<AnsweredCall, Refusal> {
        let (answer, mut answered) = tokio::sync::oneshot::channel();
        let mut ask = AgentCall { request, left_out: Vec::new(), pieces: None, answer };
        let begun = self.begin_call(&mut ask)?;
        let (model, cancel) = (self.model, self.cancel.clone());
        let done = ask::run(model, &ask.request, None, given_up(&cancel)).await;
        self.finish(FinishedCall { ask, begun, done }, true);
        answered.try_recv().unwrap()
    }
}

fn request(text: &str) -> Request {
    Request { messages: vec![Message::new(Role::User, text)], foreign: true, ..Request::default() }
}

fn reply(tokens: u64) -> Reply {
    Reply { text: "yes".into(), usage: Usage { output: tokens, ..Usage::default() }, cost: 0.25, ..Reply::default() }
}

#[tokio::test]
async fn an_agent_whose_calls_fail_ten_times_in_a_row_is_stopped() {
    // One reply between failures resets the count of failures.
    let model =
        RespondingModel::new(0, |call| if call == 9 { Ok(reply(1)) } else { Err(ModelError::Refused("no".into())) });
    let mut bench = MeterFixture::new(Limits { cost: 100.0, ..Limits::default() });
    let mut meter = bench.meter(&model);
    for call in 0..19 {
        let answer = meter.answer(request("hi")).await;
        assert_eq!(answer.is_ok(), call == 9, "{answer:?}");
        assert!(meter.stopped.is_none(), "after call {call}");
    }
    assert_eq!(meter.answer(request("hi")).await.unwrap_err().why, RefusalKind::Filtered);
    assert_eq!(meter.stopped.as_ref().map(|stopped| stopped.end), Some(End::Refused));
    assert!(meter.stop.is_cancelled());
    assert_eq!(meter.answer(request("hi")).await.unwrap_err().why, RefusalKind::Closed, "nothing is asked any more");
    assert_eq!(model.asked.lock().unwrap().len(), 20);
}

#[tokio::test]
async fn a_request_that_would_overfill_the_record_is_refused_before_the_model_is_asked() {
    let model = RespondingModel::new(0, |_| Ok(reply(1)));
    let mut bench = MeterFixture::new(Limits::default());
    let mut meter = bench.meter(&model);
    meter.record.room = 3000;
    let first = request(&"a".repeat(2000));
    assert!(meter.answer(first.clone()).await.is_ok());
    // Messages that are already recorded are not recorded again, so they do not count against the record's maximum
    // size.
    let mut longer = first.clone();
    longer.messages.extend([Message::new(Role::Assistant, "yes"), Message::new(Role::User, "more")]);
    assert!(meter.answer(longer).await.is_ok());
    let refusal = meter.answer(request(&"b".repeat(2000))).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::Budget);
    assert!(refusal.message.contains("no more room"), "{refusal:?}");
    assert_eq!((meter.refused, model.asked.lock().unwrap().len()), (Some(End::DiskLimit), 2));
    let events = bench.events();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Asked { .. })).count(), 2);
    assert!(matches!(events.last(), Some(Event::CallRefused { .. })), "{events:?}");
}

#[tokio::test]
async fn a_reply_can_be_no_longer_than_there_are_tokens_left() {
    let model = RespondingModel::new(0, |_| Ok(reply(400)));
    let mut bench = MeterFixture::new(Limits { tokens: Some(1000), cost: 100.0, ..Limits::default() });
    let mut meter = bench.meter(&model);
    let most = |most| Request { sampling: Sampling { max_tokens: most, ..Sampling::default() }, ..request("hi") };
    for (asked, given) in [(Some(4000), 1000), (None, 600), (Some(50), 50)] {
        assert_eq!(meter.answer(most(asked)).await.unwrap().most, Some(given));
    }
    assert_eq!(meter.answer(most(None)).await.unwrap_err().why, RefusalKind::Budget, "1200 of 1000 are used");
    let sent: Vec<_> = model.asked.lock().unwrap().iter().map(|request| request.sampling.max_tokens).collect();
    assert_eq!(sent, [Some(1000), Some(600), Some(50)]);
}

#[tokio::test(start_paused = true)]
async fn when_the_run_stops_a_call_in_progress_is_awaited_briefly_and_recorded() {
    for (after, cost) in [(2, 0.25), (100, 0.0)] {
        let model = RespondingModel::new(after, |_| Ok(reply(7)));
        let mut bench = MeterFixture::new(Limits::default());
        let cancel = bench.cancel.clone();
        let mut meter = bench.meter(&model);
        let begun = tokio::time::Instant::now();
        let (answer, ()) = tokio::join!(meter.answer(request("hi")), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        });
        assert_eq!(answer.is_ok(), cost > 0.0, "{answer:?}");
        assert!(begun.elapsed() <= Duration::from_millis(1100) + LAST_REPLY, "{:?}", begun.elapsed());
        assert_eq!(meter.answer(request("more")).await.unwrap_err().why, RefusalKind::Closed);
        assert!((bench.budget.cost - cost).abs() < 1e-9);
        let events = bench.events();
        match events.last() {
            Some(Event::Reply { usage, .. }) => assert_eq!((after, usage.output), (2, 7)),
            Some(Event::CallFailed { what, .. }) => {
                assert!(after == 100 && what.contains("what it cost is unknown"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn time_in_which_other_processes_hold_up_the_program_is_subtracted_once() {
    let model = RespondingModel::new(0, |_| Ok(reply(1)));
    let mut bench = MeterFixture::new(Limits { seconds: 100.0, ..Limits::default() });
    let starved = bench.starved.clone();
    let mut meter = bench.meter(&model);
    let earlier = |seconds: u64| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
    meter.begun = earlier(10);
    let first_deadline = meter.deadline();
    starved.send_replace(Duration::from_secs(4));
    meter.note_starved();
    assert_eq!(meter.tool_time().as_secs(), 6);
    assert_eq!(meter.deadline() - first_deadline, Duration::from_secs(4));
    // During the next five seconds, the program waits for the model, and its processes are held up for 3 s of this
    // time. These 3 s are not subtracted, because the whole wait for the model is subtracted already.
    (meter.begun, meter.waited) = (earlier(15), Duration::from_secs(5));
    starved.send_replace(Duration::from_secs(7));
    meter.note_starved();
    assert_eq!(meter.tool_time().as_secs(), 6);
    // During the five seconds after that, other processes hold up the program all the time, so all of it is subtracted.
    meter.begun = earlier(20);
    starved.send_replace(Duration::from_secs(12));
    meter.note_starved();
    assert_eq!(meter.tool_time().as_secs(), 6);
}

#[tokio::test]
async fn unreadable_requests_are_counted_and_the_first_few_recorded() {
    let model = RespondingModel::new(0, |_| Ok(reply(1)));
    let mut bench = MeterFixture::new(Limits::default());
    let mut meter = bench.meter(&model);
    for number in 0..60 {
        meter.unreadable(Refusal { why: RefusalKind::Invalid, message: format!("no {number}") });
    }
    assert_eq!(meter.unreadable, (60, "no 59".to_owned()));
    assert_eq!((bench.events().len(), bench.budget.calls), (UNREADABLE as usize, 0));
}

#[tokio::test]
async fn thoughts_of_a_model_that_an_external_agent_drops_are_restored_in_its_later_requests() {
    let signed = Thought::Signature { signature: "s".into(), call_id: Some("a".into()) };
    let thoughts = vec![Thought::Text("I think.".into()), signed];
    let call = ToolCall { id: "a".into(), name: "bash".into(), arguments: json!({}) };
    let model = RespondingModel::new(0, |_| {
        Ok(Reply { tool_calls: vec![call.clone()], thoughts: thoughts.clone(), ..Reply::default() })
    });
    let mut bench = MeterFixture::new(Limits::default());
    let mut meter = bench.meter(&model);
    let request = Request { messages: vec![Message::new(Role::User, "hi")], ..Request::default() };
    meter.answer(request.clone()).await.unwrap();
    // Some programs replace the ids of calls by their own.
    for id in ["a", "call_a_0"] {
        let mut request = request.clone();
        let call = ToolCall { id: id.into(), ..call.clone() };
        request.messages.push(Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") });
        request.messages.push(Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, "out") });
        meter.answer(request).await.unwrap();
        let asked = model.asked.lock().unwrap();
        let signed = Thought::Signature { signature: "s".into(), call_id: Some(id.into()) };
        assert_eq!(asked.last().unwrap().messages[1].thoughts, [Thought::Text("I think.".into()), signed]);
    }
}

#[tokio::test]
async fn the_effort_none_of_an_agent_reaches_only_models_that_are_known_to_take_it() {
    struct ReasoningModel(RespondingModel<fn(u32) -> Result<Reply, ModelError>>, bool);
    #[async_trait]
    impl Model for ReasoningModel {
        fn name(&self) -> &'static str {
            "reasons"
        }
        fn reasons(&self) -> bool {
            true
        }
        fn takes_effort_none(&self) -> bool {
            self.1
        }
        async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
            self.0.query(request).await
        }
    }
    for (takes, effort, sent) in [
        (true, Effort::None, Some(Effort::None)),
        (false, Effort::None, Some(Effort::Low)),
        (false, Effort::Minimal, Some(Effort::Low)),
    ] {
        let model = ReasoningModel(RespondingModel::new(0, |_| Ok(reply(1))), takes);
        let mut bench = MeterFixture::new(Limits::default());
        let mut meter = bench.meter(&model);
        let sampling = Sampling { effort: Some(effort), ..Sampling::default() };
        meter.answer(Request { sampling, ..request("hi") }).await.unwrap();
        assert_eq!(model.0.asked.lock().unwrap()[0].sampling.effort, sent);
        let events = bench.events();
        let left_out = |event: &&Event| matches!(event, Event::NotPassed { what } if what.contains("`none`"));
        assert_eq!(events.iter().filter(left_out).count(), usize::from(effort == Effort::None && !takes));
    }
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_run_while_money_lasts_and_are_recorded_with_their_replies() {
    struct ExpensiveModel(RespondingModel<fn(u32) -> Result<Reply, ModelError>>);
    #[async_trait]
    impl Model for ExpensiveModel {
        fn name(&self) -> &'static str {
            "dear"
        }
        fn quote(&self, _request: &Request) -> Quote {
            Quote { read: 0.0, token: 0.01, least: 1, thoughts: 0 }
        }
        async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
            self.0.query(request).await
        }
    }
    // Three calls are made at once; each takes 10 s. A call reserves $0.01 for each token that its reply may have, and
    // then costs $0.25. So with $1, calls of up to 40 tokens run two at a time, and calls of up to 90 tokens one at a
    // time.
    for (cost, most_tokens, seconds) in [(10.0, 40, 10), (1.0, 40, 20), (1.0, 90, 30)] {
        let model = ExpensiveModel(RespondingModel::new(10, |_| Ok(reply(1))));
        let mut bench = MeterFixture::new(Limits { cost, ..Limits::default() });
        let mut meter = bench.meter(&model);
        let (to, asked) = mpsc::channel(16);
        let ended = CancellationToken::new();
        let begun = tokio::time::Instant::now();
        let ask = async {
            let mut answers = Vec::new();
            for text in ["a", "b", "c"] {
                let (answer, answered) = tokio::sync::oneshot::channel();
                let mut request = request(text);
                request.sampling.max_tokens = Some(most_tokens);
                let left_out = vec!["`top_k`".to_owned()];
                to.send(GatewayRequest::Call(Box::new(AgentCall { request, left_out, pieces: None, answer })))
                    .await
                    .unwrap();
                answers.push(answered);
            }
            for answer in answers {
                answer.await.unwrap().unwrap();
            }
            ended.cancel();
        };
        tokio::join!(meter.serve(asked, &ended), ask);
        assert_eq!(begun.elapsed().as_secs(), seconds, "{cost} dollars, {most_tokens} tokens");
        assert!(meter.tool_time() < Duration::from_secs(1), "one clock stands still for all of them");
        let calls: Vec<u32> = model.0.asked.lock().unwrap().iter().map(|request| request.call).collect();
        assert_eq!(calls, [0, 1, 2]);
        let kinds = bench.events().into_iter().map(|event| match event {
            Event::Asked { .. } => 'a',
            Event::Reply { .. } => 'r',
            Event::NotPassed { .. } => 'n',
            other => panic!("{other:?}"),
        });
        assert_eq!(kinds.collect::<String>(), "nararar", "once it is said what is not passed on");
    }
}
